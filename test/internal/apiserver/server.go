// Package apiserver is for tests of a package that have one API server in common:
// the control plane of this repository, or the cluster that the user has chosen.
//
//	func TestMain(m *testing.M) { os.Exit(apiserver.Main(m, apiserver.Leaks)) }
//
//	func TestSomething(t *testing.T) {
//		config := apiserver.Config(t)
//		namespace := apiserver.Namespace(t)
//
// Everything may be used concurrently, except for Main.
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
	// StartTimeout bounds a start. It takes a few seconds, more while other packages
	// are compiled.
	StartTimeout = 3 * time.Minute

	// cleanupTimeout bounds what is done to the server after the end of a test.
	cleanupTimeout = 30 * time.Second

	// leakTimeout bounds how long goroutines may take to end after the tests.
	leakTimeout = time.Minute

	// PollInterval is the time between two looks at the server.
	PollInterval = 50 * time.Millisecond
)

// server is the one that was started; nil if none was.
var server *controlplane.Server

// shared returns a configuration for the server, which it starts the first time.
var shared = sync.OnceValues(func() (*rest.Config, error) {
	if OnCluster() {
		return Load(os.Getenv(clientcmd.RecommendedConfigPathEnvVar))
	}
	binary, err := program()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), StartTimeout)
	defer cancel()
	if server, err = controlplane.Start(ctx, controlplane.Options{Binary: binary}); err != nil {
		return nil, err
	}
	return Load(server.Kubeconfig())
})

// OnCluster reports whether the tests run on a cluster of the user's.
func OnCluster() bool { return os.Getenv(UseCluster) == "1" }

// Load reads a kubeconfig. The client's own rate limit is switched off: it would
// hide how many requests there are, and slow the tests down.
func Load(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}

// stop stops the server if a test has started it. No test may run any more.
func stop() error {
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

// Kubeconfig returns the path of the kubeconfig of the server, for other programs.
func Kubeconfig(t *testing.T) string {
	t.Helper()
	Config(t) // starts the server
	if server == nil {
		return os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	}
	return server.Kubeconfig()
}

// Clientset returns clients of an administrator of the server.
func Clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	return ClientsetFor(t, Config(t))
}

// ClientsetFor returns clients for a configuration.
func ClientsetFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return clients
}

// Namespace creates a namespace and returns its name. It is deleted at the end of
// the test.
func Namespace(t *testing.T) string {
	t.Helper()
	return NamespaceOn(t, Clientset(t))
}

// NamespaceOn is Namespace for any server.
func NamespaceOn(t *testing.T, clients kubernetes.Interface) string {
	t.Helper()
	namespace, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "eventseries-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { DeleteNamespace(t, clients, namespace.Name) })
	return namespace.Name
}

// DeleteNamespace deletes a namespace at the end of a test, if the test has not
// deleted it.
func DeleteNamespace(t *testing.T, clients kubernetes.Interface, name string) {
	t.Helper()
	ctx, cancel := CleanupContext()
	defer cancel()
	err := clients.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		require.NoError(t, err)
	}
}

// CleanupContext bounds what is done after the end of a test, whose own context has
// ended then.
func CleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), cleanupTimeout)
}

// Eventually calls check until it returns nil, and fails the test with its last
// error if it does not within the given time.
func Eventually(t *testing.T, within time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	ticker := time.NewTicker(PollInterval)
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
