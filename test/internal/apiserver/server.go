// Package apiserver provides a Kubernetes API server for the tests of a package: the
// control plane of this repository, or the cluster of the user if UseCluster is set.
//
//	func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Leaks)) }
//
//	func TestSomething(t *testing.T) {
//		config := apiserver.Config(t)
//		namespace := apiserver.Namespace(t)
//
// All tests share one server, which starts on first use. [Start] starts a server for
// a single test. All functions except [Main] are safe for concurrent use.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// UseCluster is an environment variable. If it is 1, the tests use the cluster of
// KUBECONFIG.
const UseCluster = "EVENTSERIES_USE_CLUSTER"

// StartTimeout bounds how long a test waits for the program to become ready. It takes
// a few seconds, or more while other packages compile.
const StartTimeout = 3 * time.Minute

// leakTimeout bounds how long goroutines may take to exit after the tests.
const leakTimeout = time.Minute

// program builds the control plane once.
var program = sync.OnceValues(func() (string, error) {
	return controlplane.Build(context.Background(), os.Stderr)
})

// server is the shared server. It is nil if no test has started it.
var server *controlplane.Server

// shared starts the shared server once, and returns the path of its kubeconfig.
var shared = sync.OnceValues(func() (kubeconfig string, err error) {
	if OnCluster() {
		return os.Getenv(clientcmd.RecommendedConfigPathEnvVar), nil
	}
	binary, err := program()
	if err != nil {
		return "", err
	}
	if server, err = controlplane.Start(context.Background(), controlplane.Options{Binary: binary}); err != nil {
		return "", err
	}
	return server.Kubeconfig(), nil
})

// OnCluster reports whether the tests use a cluster of the user.
func OnCluster() bool { return os.Getenv(UseCluster) == "1" }

// Kubeconfig returns the path of a kubeconfig for an administrator of the shared
// server.
func Kubeconfig(t *testing.T) string {
	t.Helper()
	kubeconfig, err := shared()
	require.NoError(t, err)
	return kubeconfig
}

// Program returns the path of the control plane, and builds it if necessary. It skips
// the test on a cluster.
func Program(t *testing.T) string {
	t.Helper()
	if OnCluster() {
		t.Skipf("%s=1: this test needs its own server", UseCluster)
	}
	binary, err := program()
	require.NoError(t, err)
	return binary
}

// Start starts a server for this test only, and stops it when the test ends. It sets
// Options.Binary. It skips the test on a cluster.
func Start(t *testing.T, opts controlplane.Options) *controlplane.Server {
	t.Helper()
	opts.Binary = Program(t)
	server, err := controlplane.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// Restart restarts a server of [Start].
func Restart(t *testing.T, server *controlplane.Server) {
	t.Helper()
	begin := time.Now()
	require.NoError(t, server.Restart(t.Context()))
	t.Logf("ready after %v", time.Since(begin).Round(time.Millisecond))
}

// Main runs the tests of a package, stops the shared server and runs the checks. It
// returns the exit code for TestMain.
//
// A test binary that exits early, because of a panic, an interrupt or the test
// timeout, stops the server and removes its files too.
func Main(m *testing.M, checks ...func() error) (code int) {
	code = m.Run()
	var err error
	if server != nil {
		err = server.Stop()
	}
	for _, check := range checks {
		if code == 0 { // a failed test may leave anything behind
			err = errors.Join(err, check())
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Leaks returns an error if goroutines are still running. It retries for a while,
// because connections close some time after their server. It returns nil on a
// cluster, because client-go keeps the connections to it open.
func Leaks() error {
	if OnCluster() {
		return nil
	}
	for deadline := time.Now().Add(leakTimeout); ; {
		err := goleak.Find() // sleeps between its own retries
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
