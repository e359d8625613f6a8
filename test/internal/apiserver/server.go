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
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// UseCluster is an environment variable. If it is 1, the tests use the cluster of
// KUBECONFIG.
const UseCluster = "EVENTSERIES_USE_CLUSTER"

// UseProgram is an environment variable: the path of another control plane.
// If it is empty, the tests build the one of test/controlplane.
const UseProgram = "EVENTSERIES_CONTROLPLANE"

// StartTimeout bounds how long a test waits for the program to become ready. It takes
// a few seconds, or more while other packages compile.
const StartTimeout = 3 * time.Minute

// leakTimeout bounds how long goroutines may take to exit after the tests.
const leakTimeout = time.Minute

// program builds the control plane once.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(UseProgram); path != "" {
		return path, nil
	}
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

// Minor returns the minor version of the shared server: 19 for Kubernetes 1.19.
func Minor(t *testing.T) int {
	t.Helper()
	info, err := Clientset(t).Discovery().ServerVersion()
	require.NoError(t, err)
	parsed, err := version.ParseGeneric(info.GitVersion)
	require.NoError(t, err)
	return int(parsed.Minor())
}

// Since skips the test if the server is older than Kubernetes 1.minor.
func Since(t *testing.T, minor int, reason string) {
	t.Helper()
	if Minor(t) < minor {
		t.Skipf("Kubernetes before 1.%d %s", minor, reason)
	}
}

// Start starts a server for this test only, and stops it when the test ends. If
// Options.Binary is empty, the server is that of [Program]. It skips the test on a cluster.
func Start(t *testing.T, opts controlplane.Options) *controlplane.Server {
	t.Helper()
	opts.Binary = cmp.Or(opts.Binary, Program(t))
	server, err := controlplane.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	return server
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

const (
	// PollInterval is the time between two polls of a server.
	PollInterval   = 50 * time.Millisecond
	cleanupTimeout = 30 * time.Second
)

// Load reads a kubeconfig. It disables client-side rate limiting, which would hide
// the number of requests and slow down the tests.
func Load(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %q: %w", kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}

// Config returns a configuration for an administrator of the shared server. The test
// may modify it.
func Config(t *testing.T) *rest.Config {
	t.Helper()
	config, err := Load(Kubeconfig(t))
	require.NoError(t, err)
	return config
}

// ConfigOf returns a configuration for an administrator of a server of [Start].
func ConfigOf(t *testing.T, server *controlplane.Server) *rest.Config {
	t.Helper()
	config, err := Load(server.Kubeconfig())
	require.NoError(t, err)
	return config
}

// ConfigAs returns a copy of a configuration with the token of another user.
func ConfigAs(config *rest.Config, u controlplane.User) *rest.Config {
	c := rest.AnonymousClientConfig(config)
	c.BearerToken = u.Token
	return c
}

// Clientset returns a clientset for an administrator of the shared server.
func Clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	return ClientsetFor(t, Config(t))
}

// ClientsetFor returns a clientset for a configuration.
func ClientsetFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return clients
}

// Namespace creates a namespace on the shared server and returns its name. It deletes
// the namespace when the test ends.
func Namespace(t *testing.T) string {
	t.Helper()
	return NamespaceOn(t, Clientset(t))
}

// NamespaceOn is like [Namespace] for any server.
func NamespaceOn(t *testing.T, clients kubernetes.Interface) string {
	t.Helper()
	namespace, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "eventseries-"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { DeleteNamespace(t, clients, namespace.Name) })
	return namespace.Name
}

// CreateNamespace creates a namespace on a server of [Start].
func CreateNamespace(t *testing.T, clients kubernetes.Interface, name string) {
	t.Helper()
	_, err := clients.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// CreatePod creates a Pod that nothing schedules.
func CreatePod(t *testing.T, clients kubernetes.Interface, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	// On a cluster the service account of a namespace appears late.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var err error
		pod, err = clients.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				SchedulerName: "nobody",
				Containers:    []corev1.Container{{Name: "main", Image: "example.com/none"}},
			},
		}, metav1.CreateOptions{})
		assert.NoError(c, err)
	}, time.Minute, PollInterval)
	return pod
}

// DeleteNamespace deletes a namespace in the cleanup of a test. The test may have
// deleted it already.
func DeleteNamespace(t *testing.T, clients kubernetes.Interface, name string) {
	t.Helper()
	ctx, cancel := CleanupContext()
	defer cancel()
	err := clients.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		require.NoError(t, err)
	}
}

// CleanupContext returns a context for the cleanup of a test, because the context of
// the test has ended then.
func CleanupContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), cleanupTimeout)
}

// FreePort is [controlplane.FreePort] for a server of a test.
func FreePort(t *testing.T) int {
	t.Helper()
	port, err := controlplane.FreePort(t.Context())
	require.NoError(t, err)
	return port
}

// PriorityLevel returns a priority level without a queue: it rejects requests while all
// of its seats are taken.
func PriorityLevel(name string, shares int32) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: &shares,
				LendablePercent:          new(int32(0)),
				BorrowingLimitPercent:    new(int32(0)),
				LimitResponse:            flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}
}

// FlowSchema returns a FlowSchema that routes all requests of a subject to the priority
// level with the same name.
func FlowSchema(name string, subject flowcontrolv1.Subject) *flowcontrolv1.FlowSchema {
	all := []string{flowcontrolv1.APIGroupAll} // "*", which matches other fields too
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: name},
			MatchingPrecedence:         100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{subject},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{
					{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true},
				},
			}},
		},
	}
}
