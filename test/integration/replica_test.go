package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// replicaVariable is the environment variable that makes this program a replica
// of a small controller instead of a test. Its value is a replicaSpec as JSON.
const replicaVariable = "EVENTSERIES_TEST_REPLICA"

type replicaSpec struct {
	Kubeconfig string
	User       string // impersonated by the replica
	Namespace  string // of its Pod and its Lease
	Name       string // its reportingInstance and its leader election identity
}

// replica is a process that a test can kill. The leader prints "leading" and
// starts a hot loop. It executes the commands on its standard input, one a line,
// and exits at the end of the input, so that no replica outlives its test.
type replica struct {
	*process
	read int // lines
}

func startReplica(t *testing.T, spec replicaSpec) *replica {
	t.Helper()
	spec.Kubeconfig = apiserver.Kubeconfig(t)
	value, err := json.Marshal(spec)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), replicaVariable+"="+string(value))
	return &replica{process: startProcess(t, cmd)}
}

func (r *replica) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, r.cmd.Process.Kill())
	<-r.done
}

func (r *replica) await(t *testing.T) string {
	t.Helper()
	r.read++
	return r.awaitLine(t, r.read-1, patience)
}

// do sends a command to the replica and returns its answer. replicaProgram.do
// documents the commands.
func (r *replica) do(t *testing.T, command string) string {
	t.Helper()
	_, err := io.WriteString(r.stdin, command+"\n")
	require.NoError(t, err, command)
	answer := r.await(t)
	require.False(t, strings.HasPrefix(answer, "error"), "%s: %s", command, answer)
	return answer
}

// The configuration of leader election. These durations keep a leader that is
// slow because the machine is busy.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 12 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

// replicaAnnotation names the replica that emitted an occurrence, so that every
// change of an Event names its writer.
const replicaAnnotation = "example.com/replica"

func replicaPod(namespace string) *corev1.Pod { return podIn(namespace, "looping") }

type replicaProgram struct {
	spec        replicaSpec
	clients     *kubernetes.Clientset
	broadcaster *events.Broadcaster
	emitted     int

	stop    chan struct{} // closed to stop the loop of the leader
	looping sync.WaitGroup
}

func runReplica(spec string) (code int) {
	p, err := newReplicaProgram(spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go p.lead()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		answer, err := p.do(in.Text())
		if err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		fmt.Println(answer)
	}
	return 1 // the test has ended
}

func newReplicaProgram(spec string) (*replicaProgram, error) {
	p := &replicaProgram{stop: make(chan struct{})}
	if err := json.Unmarshal([]byte(spec), &p.spec); err != nil {
		return nil, err
	}
	config, err := apiserver.Load(p.spec.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: p.spec.User}
	if p.clients, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	p.broadcaster = events.NewBroadcasterWithOptions(eventsSink(p.clients), events.Options{
		ReportingInstance: p.spec.Name,
		Scope:             events.SameController,
		Namespaces:        []string{p.spec.Namespace},
		HeartbeatInterval: 200 * time.Millisecond,
	})
	return p, nil
}

// do executes a command:
//
//	stop      stops the loop, and returns how often it emitted
//	flush     flushes the broadcaster
//	shutdown  shuts the broadcaster down
func (p *replicaProgram) do(command string) (answer string, err error) {
	switch command {
	case "stop":
		close(p.stop)
		p.looping.Wait()
		return strconv.Itoa(p.emitted), nil
	case "flush":
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return "ok", p.broadcaster.Flush(ctx)
	case "shutdown":
		p.broadcaster.Shutdown()
		return "ok", nil
	default:
		return "", errors.New("unknown command: " + command)
	}
}

// lead competes for the Lease. It exits when it loses the Lease.
func (p *replicaProgram) lead() {
	// As in controller-runtime, the legacy recorder writes the events about the
	// election.
	legacy := record.NewBroadcaster()
	legacy.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: p.clients.CoreV1().Events("")})
	leaderelection.RunOrDie(context.Background(), leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: p.spec.Namespace, Name: "backup-controller"},
			Client:    p.clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{
				Identity:      p.spec.Name,
				EventRecorder: legacy.NewRecorder(scheme.Scheme, corev1.EventSource{Component: p.spec.Name}),
			},
		},
		LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: p.loop,
			OnStoppedLeading: func() {
				fmt.Fprintln(os.Stderr, "the lease is lost")
				os.Exit(1)
			},
		},
	})
}

func (p *replicaProgram) loop(ctx context.Context) {
	recorder := p.broadcaster.NewRecorder(scheme.Scheme, controller).(events.AnnotatedEventRecorder)
	if err := p.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p.looping.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			recorder.AnnotatedEventf(replicaPod(p.spec.Namespace), nil, map[string]string{replicaAnnotation: p.spec.Name},
				corev1.EventTypeWarning, "Looped", "Looping", "it looped")
			p.emitted++
			select {
			case <-ticker.C:
			case <-p.stop:
				return
			}
		}
	})
	fmt.Println("leading")
}
