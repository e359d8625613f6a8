package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// stopWithin is how long a clean stop may take.
const stopWithin = 15 * time.Second

// TestProgram looks at the program itself: its command line, exit code and
// output, without the package that
// otherwise starts it.
func TestProgram(t *testing.T) {
	binary := apiserver.Program(t)
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "a kubeconfig")
	port, etcdPort := freePort(t), freePort(t)
	args := []string{
		"--data-dir=" + filepath.Join(dir, "data"), "--kubeconfig=" + kubeconfig,
		"--port=" + strconv.Itoa(port), "--etcd-port=" + strconv.Itoa(etcdPort), "--event-ttl=1h",
	}
	wantLine := fmt.Sprintf("ready https://127.0.0.1:%d kubeconfig=%s\n", port, kubeconfig)

	for start := range 2 {
		p := runProgram(t, binary, args...)
		p.waitFor(t, "\n")
		config, err := apiserver.Load(kubeconfig)
		require.NoError(t, err, "the kubeconfig is there when the line is")
		clients := apiserver.ClientsetFor(t, config)
		if start == 0 {
			createConfigMap(t, clients, "before")
			conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(etcdPort)))
			require.NoError(t, err, "etcd listens where it was told")
			require.NoError(t, conn.Close())
		}
		requireConfigMap(t, clients, "before")

		begin := time.Now()
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, p.wait(t, stopWithin), "exit code 0; stderr: %s", &p.stderr)
		t.Logf("stopped after %v", time.Since(begin).Round(time.Millisecond))
		assert.Equal(t, wantLine, p.stdout.String(), "one line and no more")
	}
}

func TestProgramEndsWithItsLifeline(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := runProgram(t, apiserver.Program(t), "--lifeline", "--data-dir="+dir, "--remove-orphaned-data")
	p.waitFor(t, "\n")
	require.NoError(t, p.stdin.Close())
	require.NoError(t, p.wait(t, stopWithin), "exit code 0; stderr: %s", &p.stderr)
	assert.NoDirExists(t, dir)
}

func TestProgramRefusesAWrongCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"--event-ttl=10ms"},
		{"--port=70000"},
		{"--user=nobody"},
		{"stray"},
		{"--no-such-flag"},
	} {
		p := runProgram(t, apiserver.Program(t), args...)
		var exit *exec.ExitError
		require.ErrorAs(t, p.wait(t, stopWithin), &exit, "%q", args)
		assert.Equal(t, 2, exit.ExitCode(), "%q", args)
		assert.Empty(t, p.stdout.String())
		assert.Contains(t, p.stderr.String(), "controlplane: ")
	}
}

func TestServerServesWhatTheRecorderNeeds(t *testing.T) {
	clients := apiserver.Clientset(t)
	for _, version := range []string{
		"v1", "events.k8s.io/v1", "coordination.k8s.io/v1", "rbac.authorization.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1",
	} {
		_, err := clients.Discovery().ServerResourcesForGroupVersion(version)
		assert.NoError(t, err)
	}
	for _, name := range []string{"default", "kube-system"} {
		_, err := clients.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		assert.NoError(t, err, "events about cluster-scoped objects have to go somewhere")
	}
	if !apiserver.OnCluster() {
		version, err := clients.Discovery().ServerVersion()
		require.NoError(t, err)
		assert.Regexp(t, `^v1\.\d+\.\d+$`, version.GitVersion)
	}
}

func TestServerSurvivesStopAndKill(t *testing.T) {
	server := apiserver.Start(t, controlplane.Options{})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	createConfigMap(t, clients, "before")
	addr, pid := server.Addr(), server.PID()

	apiserver.Restart(t, server)
	assert.Equal(t, addr, server.Addr())
	assert.NotEqual(t, pid, server.PID())
	requireConfigMap(t, clients, "before") // by the client of before, so the certificate and the token are the same

	createConfigMap(t, clients, "killed")
	require.NoError(t, server.Kill())
	_, err := clients.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
	apiserver.Restart(t, server)
	assert.Equal(t, addr, server.Addr())
	requireConfigMap(t, clients, "before")
	requireConfigMap(t, clients, "killed")
}

func TestServerPauses(t *testing.T) {
	server := apiserver.Start(t, controlplane.Options{})
	clients := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server))
	get := func(ctx context.Context) error {
		_, err := clients.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	require.NoError(t, server.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.ErrorIs(t, get(ctx), context.DeadlineExceeded)
	require.NoError(t, server.Resume())
	apiserver.Eventually(t, time.Minute, get)
	require.NoError(t, server.Pause())
	require.NoError(t, server.Stop(), "a paused server stops as well")
}

func TestServerForgetsEventsAfterTheirTTL(t *testing.T) {
	const ttl = 3 * time.Second
	server := apiserver.Start(t, controlplane.Options{EventTTL: ttl})
	events := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server)).EventsV1().Events("default")
	begin := time.Now()
	event, err := events.Create(t.Context(), &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: "short-lived-"},
		EventTime:           metav1.NowMicro(),
		ReportingController: "example.com/test",
		ReportingInstance:   "test-0",
		Action:              "Testing",
		Reason:              "Test",
		Type:                corev1.EventTypeNormal,
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "pod"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	apiserver.Eventually(t, time.Minute, func(ctx context.Context) error {
		switch _, err := events.Get(ctx, event.Name, metav1.GetOptions{}); {
		case err == nil:
			return fmt.Errorf("%s is still there", event.Name)
		case apierrors.IsNotFound(err):
			return nil
		default:
			return err
		}
	})
	age := time.Since(begin)
	t.Logf("gone after %v", age.Round(time.Millisecond))
	assert.GreaterOrEqual(t, age, ttl)
}

func TestServerKnowsFurtherUsers(t *testing.T) {
	alone := controlplane.User{Name: "alone", Token: "token-of-alone"}
	dev := controlplane.User{Name: "dev", Token: "token-of-dev", Groups: []string{"devs", "testers"}}
	server := apiserver.Start(t, controlplane.Options{Users: []controlplane.User{alone, dev}})
	config := apiserver.ConfigOf(t, server)
	admin := apiserver.ClientsetFor(t, config)
	_, err := admin.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "see-pods"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "testers-see-pods"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "see-pods"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "testers"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	list := func(u controlplane.User) error {
		_, err := apiserver.ClientsetFor(t, apiserver.ConfigAs(config, u)).CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err
	}
	apiserver.Eventually(t, time.Minute, func(context.Context) error { return list(dev) })
	assert.True(t, apierrors.IsForbidden(list(alone)))
	assert.True(t, apierrors.IsUnauthorized(list(controlplane.User{Token: "nobody's"})))
}

func TestServerTakesAdmissionPlugins(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: EventRateLimit
  configuration:
    apiVersion: eventratelimit.admission.k8s.io/v1alpha1
    kind: Configuration
    limits:
    - {type: Server, qps: 1, burst: 3}
`), 0o600))
	server := apiserver.Start(t, controlplane.Options{ExtraArgs: []string{
		"--", "--enable-admission-plugins=EventRateLimit", "--admission-control-config-file=" + file,
		"--max-requests-inflight=100",
	}})
	events := apiserver.ClientsetFor(t, apiserver.ConfigOf(t, server)).CoreV1().Events("default")
	var err error
	for i := 0; i < 20 && err == nil; i++ {
		_, err = events.Create(t.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{GenerateName: "many-"},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "pod"},
		}, metav1.CreateOptions{})
	}
	assert.True(t, apierrors.IsTooManyRequests(err), "got %v", err)
}

func TestNamespacesAreOfTheirOwn(t *testing.T) {
	first, second := apiserver.Namespace(t), apiserver.Namespace(t)
	assert.NotEqual(t, first, second)
	_, err := apiserver.Clientset(t).CoreV1().Namespaces().Get(t.Context(), second, metav1.GetOptions{})
	assert.NoError(t, err)
}

// runningProgram is the control plane's program, started by a test.
type runningProgram struct {
	cmd            *exec.Cmd
	stdin          io.Closer
	stdout, stderr syncBuffer
	done           chan struct{}
	err            error // of the exit; to be read when done is closed
}

// runProgram starts the program. It is killed if it still runs at the end of the
// test.
func runProgram(t *testing.T, binary string, args ...string) *runningProgram {
	t.Helper()
	p := &runningProgram{cmd: exec.CommandContext(t.Context(), binary, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	p.stdin = stdin
	require.NoError(t, p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() { <-p.done })
	return p
}

// waitFor waits until the program has printed s.
func (p *runningProgram) waitFor(t *testing.T, s string) {
	t.Helper()
	apiserver.Eventually(t, apiserver.StartTimeout, func(context.Context) error {
		select {
		case <-p.done:
			t.Fatalf("the program ended (%v): %s", p.err, &p.stderr)
		default:
		}
		if !strings.Contains(p.stdout.String(), s) {
			return fmt.Errorf("stdout is %q", &p.stdout)
		}
		return nil
	})
}

// wait waits for the program's end and returns how it ended.
func (p *runningProgram) wait(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("the program still runs after %v: %s", within, &p.stderr)
	}
	return p.err
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().(*net.TCPAddr).Port
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
