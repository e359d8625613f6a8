package integration

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// useCluster is the variable that sends the tests to an existing cluster.
const useCluster = "EVENTSERIES_USE_CLUSTER"

// startTimeout bounds a start of the control plane. It takes a few seconds, more
// while other packages are compiled.
const startTimeout = 3 * time.Minute

func TestMain(m *testing.M) {
	if spec, ok := os.LookupEnv(replicaVariable); ok {
		os.Exit(runReplica(spec))
	}
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if err := leaks(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// A test binary that ends before it comes here (a panic, an interrupt, the
	// test timeout) takes the server and its files with it all the same.
	os.Exit(code)
}

// leaks returns an error if goroutines are left after all tests. Connections end
// some time after the server that they lead to. To a cluster, which goes on, they
// are kept for the next request, so nothing can be said there.
func leaks() error {
	if onCluster() {
		return nil
	}
	for deadline := time.Now().Add(patience); ; {
		err := goleak.Find() // which waits for a moment
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// program builds the control plane, once for all tests.
var program = sync.OnceValues(func() (string, error) {
	return controlplane.Build(context.Background(), os.Stderr)
})

// shared is the server that the tests of this package have in common. The first
// test that needs it starts it.
var shared commonServer

type commonServer struct {
	once   sync.Once
	server *controlplane.Server // nil: not started, or a cluster of the user's
	config *rest.Config
	err    error
}

// get returns a configuration for the server.
func (c *commonServer) get() (*rest.Config, error) {
	c.once.Do(func() { c.config, c.err = c.start() })
	return c.config, c.err
}

func (c *commonServer) start() (*rest.Config, error) {
	if onCluster() {
		return loadConfig(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	}
	binary, err := program()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	c.server, err = controlplane.Start(ctx, controlplane.Options{Binary: binary})
	if err != nil {
		return nil, err
	}
	return loadConfig(c.server.Kubeconfig())
}

// stop stops the server, if one was started.
func (c *commonServer) stop() error {
	if c.server == nil {
		return nil
	}
	return c.server.Stop()
}

// onCluster reports whether the tests run on a cluster of the user's.
func onCluster() bool { return os.Getenv(useCluster) == "1" }

// loadConfig reads a kubeconfig. The client's own rate limit is switched off: it
// would hide how many requests there are, and slow the tests down.
func loadConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}
