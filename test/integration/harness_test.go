package integration

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// pollInterval is the time between two looks at a real server.
const pollInterval = 50 * time.Millisecond

// cleanupTimeout bounds what a test does to a server after its end.
const cleanupTimeout = 30 * time.Second

// Config returns a configuration of an administrator of the shared server. The
// test may change it.
func Config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := shared.get()
	require.NoError(t, err)
	return rest.CopyConfig(config)
}

// kubeconfig returns the path of the kubeconfig of the shared server, for other
// programs.
func kubeconfig(t *testing.T) string {
	t.Helper()
	Config(t) // starts the server
	if shared.server == nil {
		return os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	}
	return shared.server.Kubeconfig()
}

// Clientset returns clients for the shared server.
func Clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	return ClientsetFor(t, Config(t))
}

// Namespace creates a namespace on the shared server and returns its name. It is
// deleted at the end of the test.
func Namespace(t *testing.T) string {
	t.Helper()
	return NamespaceOn(t, Clientset(t))
}

// StartServer starts a server for this test alone and stops it at the test's
// end. Options.Binary is filled in. On a user's cluster the test is skipped.
func StartServer(t *testing.T, opts controlplane.Options) *controlplane.Server {
	t.Helper()
	opts.Binary = Program(t)
	server, err := controlplane.Start(startContext(t), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
}

// Restart starts a server of StartServer again on its data and ports.
func Restart(t *testing.T, server *controlplane.Server) {
	t.Helper()
	begin := time.Now()
	require.NoError(t, server.Restart(startContext(t)))
	t.Logf("ready again %v later", time.Since(begin).Round(time.Millisecond))
}

// Program returns the path of the control plane, built. On a user's cluster the
// test is skipped.
func Program(t *testing.T) string {
	t.Helper()
	if onCluster() {
		t.Skipf("%s=1: this test needs a server of its own", useCluster)
	}
	binary, err := program()
	require.NoError(t, err)
	return binary
}

// ConfigFor returns a configuration of an administrator of a server of
// StartServer.
func ConfigFor(t *testing.T, server *controlplane.Server) *rest.Config {
	t.Helper()
	config, err := loadConfig(server.Kubeconfig())
	require.NoError(t, err)
	return config
}

// ConfigAs returns a copy of a configuration with another user's token.
func ConfigAs(config *rest.Config, u controlplane.User) *rest.Config {
	c := rest.AnonymousClientConfig(config)
	c.QPS, c.Burst = config.QPS, config.Burst
	c.BearerToken = u.Token
	return c
}

// ClientsetFor returns clients for a configuration.
func ClientsetFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return clients
}

// NamespaceOn is Namespace for any server.
func NamespaceOn(t *testing.T, clients kubernetes.Interface) string {
	t.Helper()
	namespaces := clients.CoreV1().Namespaces()
	ns, err := namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "eventseries-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { deleteNamespace(t, clients, ns.Name) })
	return ns.Name
}

// deleteNamespace deletes a namespace, at the end of a test, if the test has not
// deleted it.
func deleteNamespace(t *testing.T, clients kubernetes.Interface, name string) {
	t.Helper()
	ctx, cancel := cleanupContext()
	defer cancel()
	err := clients.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		require.NoError(t, err)
	}
}

// deleteEvent deletes an Event that does not go with its namespace.
func deleteEvent(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	ctx, cancel := cleanupContext()
	defer cancel()
	err := clients.EventsV1().Events(event.Namespace).Delete(ctx, event.Name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
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

// cleanupContext bounds what is done after the end of a test, whose own context
// has ended then.
func cleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), cleanupTimeout)
}

// startContext bounds a start of the control plane.
func startContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	t.Cleanup(cancel)
	return ctx
}
