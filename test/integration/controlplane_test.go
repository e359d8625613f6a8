package integration

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const stopWithin = 15 * time.Second

// TestProgram tests the program itself: its command line, exit code and output.
// Package controlplane, which starts it for the other tests, is not involved.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "a kubeconfig")
	port, etcdPort := apiserver.FreePort(t), apiserver.FreePort(t)
	args := []string{
		"--data-dir=" + filepath.Join(dir, "data"), "--kubeconfig=" + kubeconfig,
		"--port=" + strconv.Itoa(port), "--etcd-port=" + strconv.Itoa(etcdPort), "--event-ttl=1h",
	}
	wantLine := fmt.Sprintf("ready https://127.0.0.1:%d kubeconfig=%s\n", port, kubeconfig)

	p := startProcess(t, exec.CommandContext(t.Context(), apiserver.Program(t), args...))
	p.wait(t, p.ready, apiserver.StartTimeout)
	_, err := apiserver.Load(kubeconfig)
	require.NoError(t, err, "the kubeconfig exists before the line")
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", etcdPort))
	require.NoError(t, err, "etcd listens on its port")
	require.NoError(t, conn.Close())

	begin := time.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.wait(t, p.done, stopWithin)
	require.NoError(t, p.err, "exit code 0")
	t.Logf("stopped after %v", time.Since(begin).Round(time.Millisecond))
	assert.Equal(t, wantLine, p.stdout, "one line")
}

func TestProgramExitsWithItsLifeline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := startProcess(t, exec.CommandContext(t.Context(), apiserver.Program(t), "--lifeline", "--data-dir="+dir, "--remove-orphaned-data",
		"--port="+strconv.Itoa(apiserver.FreePort(t)), "--etcd-port="+strconv.Itoa(apiserver.FreePort(t))))
	p.wait(t, p.ready, apiserver.StartTimeout)
	require.NoError(t, p.stdin.Close())
	p.wait(t, p.done, stopWithin)
	require.NoError(t, p.err, "exit code 0")
	assert.NoDirExists(t, dir)
}

func TestProgramRejectsAnInvalidCommandLine(t *testing.T) {
	p := startProcess(t, exec.CommandContext(t.Context(), apiserver.Program(t), "--data-dir="+t.TempDir(), "--event-ttl=10ms"))
	var exit *exec.ExitError
	p.wait(t, p.done, stopWithin)
	require.ErrorAs(t, p.err, &exit)
	assert.Equal(t, 2, exit.ExitCode())
	assert.Empty(t, p.stdout)
	assert.Contains(t, p.stderr.String(), "controlplane: ")
}

// TestServer tests the features of a server that the other tests rely on.
func TestServer(t *testing.T) {
	const ttl = 3 * time.Second
	alone := controlplane.User{Name: "alone", Token: "token-of-alone"}
	dev := controlplane.User{Name: "dev", Token: "token-of-dev", Groups: []string{"devs", "testers"}}
	server := apiserver.Start(t, controlplane.Options{EventTTL: ttl, Users: []controlplane.User{alone, dev}})
	config := apiserver.ConfigOf(t, server)
	clients := apiserver.ClientsetFor(t, config)

	version, err := clients.Discovery().ServerVersion()
	require.NoError(t, err)
	assert.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion)

	t.Run("expires Events after their TTL", func(t *testing.T) {
		begin := time.Now()
		event := strangersEvent(t, clients, metav1.NamespaceDefault, "short-lived")
		eventually(t, func(c *assert.CollectT) {
			_, err := clients.EventsV1().Events(event.Namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
			assert.True(c, apierrors.IsNotFound(err), "%v", err)
		})
		age := time.Since(begin)
		t.Logf("expired after %v", age.Round(time.Millisecond))
		assert.GreaterOrEqual(t, age, ttl)
	})

	t.Run("authenticates users", func(t *testing.T) {
		grant(t, clients, "testers-list-pods", []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "testers"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}})
		list := func(u controlplane.User) error {
			_, err := apiserver.ClientsetFor(t, apiserver.ConfigAs(config, u)).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
			return err
		}
		eventually(t, func(c *assert.CollectT) { assert.NoError(c, list(dev)) })
		assert.True(t, apierrors.IsForbidden(list(alone)))
		assert.True(t, apierrors.IsUnauthorized(list(controlplane.User{Token: "nobody's"})))
	})

	t.Run("restarts with its data", func(t *testing.T) {
		createConfigMap(t, clients, "before")
		require.NoError(t, server.Restart(t.Context()))
		requireConfigMap(t, clients, "before") // the same client, so the certificate and the token are the same

		createConfigMap(t, clients, "killed")
		require.NoError(t, server.Kill())
		_, err := clients.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		require.Error(t, err)
		require.NoError(t, server.Restart(t.Context()))
		requireConfigMap(t, clients, "before")
		requireConfigMap(t, clients, "killed")
	})

	t.Run("pauses", func(t *testing.T) {
		get := func(ctx context.Context) error {
			_, err := clients.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
			return err
		}
		require.NoError(t, server.Pause())
		eventually(t, func(c *assert.CollectT) { // its threads do not stop at once
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			assert.ErrorIs(c, get(ctx), context.DeadlineExceeded)
		})
		require.NoError(t, server.Resume())
		eventually(t, func(c *assert.CollectT) { assert.NoError(c, get(t.Context())) })
		require.NoError(t, server.Pause())
		require.NoError(t, server.Stop(), "a paused server stops")
	})
}

func createConfigMap(t *testing.T, clients kubernetes.Interface, name string) {
	t.Helper()
	_, err := clients.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func requireConfigMap(t *testing.T, clients kubernetes.Interface, name string) {
	t.Helper()
	_, err := clients.CoreV1().ConfigMaps("default").Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
}
