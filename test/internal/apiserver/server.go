// Package apiserver is for tests of a package that have one API server in common:
// the control plane of this repository, or the cluster that the user has chosen.
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		if err := apiserver.Stop(); err != nil { … }
//		os.Exit(code)
//	}
//
//	func TestSomething(t *testing.T) {
//		config := apiserver.Config(t)
//		namespace := apiserver.Namespace(t)
//
// Everything may be used concurrently, except for Stop.
package apiserver

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// UseCluster is the environment variable that, when it is 1, sends the tests to the
// cluster of KUBECONFIG.
const UseCluster = "EVENTSERIES_USE_CLUSTER"

const (
	// startTimeout bounds a start. It takes a few seconds, more while other packages
	// are compiled.
	startTimeout = 3 * time.Minute

	// cleanupTimeout bounds what is done to the server after the end of a test.
	cleanupTimeout = 30 * time.Second

	// pollInterval is the time between two looks at the server.
	pollInterval = 50 * time.Millisecond
)

// server is the one that was started; nil if none was.
var server *controlplane.Server

// shared returns a configuration for the server, which it starts the first time.
var shared = sync.OnceValues(func() (*rest.Config, error) {
	if os.Getenv(UseCluster) == "1" {
		return load(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	}
	ctx := context.Background()
	binary, err := controlplane.Build(ctx, os.Stderr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if server, err = controlplane.Start(ctx, controlplane.Options{Binary: binary}); err != nil {
		return nil, err
	}
	return load(server.Kubeconfig())
})

// load reads a kubeconfig. The client's own rate limit is switched off: it would
// slow the tests down.
func load(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}

// Stop stops the server if a test has started it. It is for TestMain: no test may
// run any more.
func Stop() error {
	if server == nil {
		return nil
	}
	return server.Stop()
}

// Config returns a configuration of an administrator of the server, which the test
// may change.
func Config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := shared()
	require.NoError(t, err)
	return rest.CopyConfig(config)
}

// Clientset returns clients of an administrator of the server.
func Clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(Config(t))
	require.NoError(t, err)
	return clients
}

// Namespace creates a namespace and returns its name. It is deleted at the end of
// the test.
func Namespace(t *testing.T) string {
	t.Helper()
	namespaces := Clientset(t).CoreV1().Namespaces()
	namespace, err := namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "eventseries-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
		defer cancel()
		err := namespaces.Delete(ctx, namespace.Name, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			require.NoError(t, err)
		}
	})
	return namespace.Name
}

// Eventually calls check until it returns nil, and fails the test with its last
// error if it does not within the given time.
func Eventually(t *testing.T, within time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			require.NoError(t, err, "still so after %v", within)
		}
	}
}
