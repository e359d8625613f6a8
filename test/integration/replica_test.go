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
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// replicaVariable is the environment variable that makes this program a replica
// of a small controller instead of a test. Its value is a replicaSpec as JSON.
const replicaVariable = "EVENTSERIES_TEST_REPLICA"

// replicaSpec configures a replica.
type replicaSpec struct {
	Kubeconfig string
	User       string // impersonated by the replica
	Namespace  string // of its Pod and its Lease
	Name       string // its reportingInstance and its leader election identity
	Scope      events.Scope

	// Now is the initial time of a fake clock, which the test steps. If zero, the
	// replica has the real clock.
	Now time.Time
	// Lease is the name of a Lease. The replica that holds it starts its
	// broadcaster and a hot loop. If empty, the replica starts its broadcaster at
	// once.
	Lease string
}

// replica is a process that a test can kill. It executes the commands on its
// standard input, one a line, and exits at the end of the input, so that no
// replica outlives its test.
type replica struct {
	cmd    *exec.Cmd
	stdin  io.Writer
	lines  chan string // its answers; closed at the end of its output
	stderr syncBuffer
	done   chan struct{}
	// now is the time of its fake clock at its last answer.
	now time.Time
}

// startReplica starts a replica on the shared server. The end of the test kills
// it.
func startReplica(t *testing.T, spec replicaSpec) *replica {
	t.Helper()
	spec.Kubeconfig = apiserver.Kubeconfig(t)
	value, err := json.Marshal(spec)
	require.NoError(t, err)
	program, err := os.Executable()
	require.NoError(t, err)
	r := &replica{
		cmd:   exec.CommandContext(t.Context(), program),
		lines: make(chan string, 100),
		done:  make(chan struct{}),
		now:   spec.Now,
	}
	r.cmd.Env = append(os.Environ(), replicaVariable+"="+string(value))
	r.cmd.Stderr = &r.stderr
	r.stdin, err = r.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	go func() {
		defer close(r.done)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			r.lines <- scanner.Text()
		}
		close(r.lines)
		_ = r.cmd.Wait() // most replicas are killed
	}()
	t.Cleanup(func() { // the context of the test has ended
		<-r.done
		if t.Failed() {
			t.Logf("the log of %s:\n%s", spec.Name, &r.stderr)
		}
	})
	return r
}

// kill sends SIGKILL to the replica and waits for its exit.
func (r *replica) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, r.cmd.Process.Kill())
	<-r.done
}

// await waits for the next line of the replica.
func (r *replica) await(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case line, ok := <-r.lines:
		require.True(t, ok, "the replica has exited")
		return line
	case <-ctx.Done():
		require.NoError(t, ctx.Err(), "the replica does not answer")
		return ""
	}
}

// do sends a command to the replica and returns its answer. replicaProgram.do
// documents the commands.
func (r *replica) do(t *testing.T, format string, args ...any) string {
	t.Helper()
	command := fmt.Sprintf(format, args...)
	_, err := io.WriteString(r.stdin, command+"\n")
	require.NoError(t, err, command)
	answer := r.await(t)
	result, at, _ := strings.Cut(answer, " at ")
	require.False(t, strings.HasPrefix(result, "error"), "%s: %s", command, answer)
	if !r.now.IsZero() {
		r.now, err = time.Parse(time.RFC3339Nano, at)
		require.NoError(t, err, answer)
	}
	return result
}

// eventually steps the clock of the replica until check returns nil.
func (r *replica) eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			r.do(t, "wait %v", step)
		}
		return err
	})
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

// replicaProgram runs in the process of a replica.
type replicaProgram struct {
	spec        replicaSpec
	clients     *kubernetes.Clientset
	clock       *clocktesting.FakeClock // nil for the real clock
	broadcaster *events.Broadcaster
	recorder    events.AnnotatedEventRecorder
	emitted     int

	stop    chan struct{} // closed to stop the loop of a leader
	looping sync.WaitGroup
}

// runReplica is the main function of a replica.
func runReplica(spec string) (code int) {
	p, err := newReplicaProgram(spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	commands := make(chan string)
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			commands <- in.Text()
		}
		// The test has ended.
		os.Exit(1)
	}()
	if p.spec.Lease != "" {
		go p.lead()
	} else if err := p.broadcaster.StartRecordingToSinkWithContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for command := range commands {
		answer, err := p.do(command)
		if err != nil {
			answer = "error: " + strings.ReplaceAll(err.Error(), "\n", " ")
		}
		if p.clock != nil {
			answer += " at " + p.clock.Now().Format(time.RFC3339Nano)
		}
		fmt.Println(answer)
	}
	return 0
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
	opts := events.Options{
		ReportingInstance: p.spec.Name,
		Scope:             p.spec.Scope,
		Namespaces:        []string{p.spec.Namespace},
	}
	if p.spec.Lease != "" {
		opts.HeartbeatInterval = 200 * time.Millisecond
	}
	if !p.spec.Now.IsZero() {
		p.clock = clocktesting.NewFakeClock(p.spec.Now)
		opts.Clock = p.clock
	}
	p.broadcaster = events.NewBroadcasterWithOptions(&events.EventSinkImpl{Interface: p.clients.EventsV1()}, opts)
	p.recorder = p.broadcaster.NewRecorder(scheme.Scheme, controller).(events.AnnotatedEventRecorder)
	return p, nil
}

// do executes a command:
//
//	emit N          emits N times
//	loop N          emits and steps the clock by a minute, N times
//	wait D          steps the clock by the duration D
//	until denied    waits until the server has denied the initial list
//	until restored  waits until the broadcaster has restored a series
//	restored        returns how many series the broadcaster has restored
//	adopted         returns how many series it has adopted by name
//	flush           flushes the broadcaster
//	shutdown        shuts the broadcaster down
//	stop            stops the loop of a leader, and returns how often it emitted
func (p *replicaProgram) do(command string) (answer string, err error) {
	verb, object, _ := strings.Cut(command, " ")
	switch verb {
	case "emit", "loop":
		n, err := strconv.Atoi(object)
		if err != nil {
			return "", err
		}
		for range n {
			p.emit()
			if verb == "loop" {
				p.clock.Step(time.Minute)
			}
		}
	case "wait":
		d, err := time.ParseDuration(object)
		if err != nil {
			return "", err
		}
		p.clock.Step(d)
	case "until":
		return "ok", p.until(func() bool {
			stats := p.broadcaster.Stats()
			if object == "restored" {
				return stats.Restored > 0
			}
			return requestsOf(stats, "list", object) > 0
		})
	case "restored":
		return strconv.FormatUint(p.broadcaster.Stats().Restored, 10), nil
	case "adopted":
		return strconv.FormatUint(p.broadcaster.Stats().Adopted, 10), nil
	case "flush":
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return "ok", p.broadcaster.Flush(ctx)
	case "shutdown":
		p.broadcaster.Shutdown()
	case "stop":
		close(p.stop)
		p.looping.Wait()
		return strconv.Itoa(p.emitted), nil
	default:
		return "", errors.New("unknown command: " + command)
	}
	return "ok", nil
}

// emit emits the event that all replicas have in common.
func (p *replicaProgram) emit() {
	p.recorder.AnnotatedEventf(replicaPod(p.spec.Namespace), nil, map[string]string{replicaAnnotation: p.spec.Name},
		corev1.EventTypeWarning, "Looped", "Looping", "it looped")
	p.emitted++
}

// replicaPod returns the Pod that replicas emit events about.
func replicaPod(namespace string) *corev1.Pod { return podIn(namespace, "looping") }

// until waits for a condition.
func (p *replicaProgram) until(holds func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ticker := time.NewTicker(apiserver.PollInterval)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// lead competes for the Lease. The leader prints "leading" and starts a hot loop.
// It exits when it loses the Lease.
func (p *replicaProgram) lead() {
	// As in controller-runtime, the legacy recorder writes the events about the
	// election.
	legacy := record.NewBroadcaster()
	legacy.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: p.clients.CoreV1().Events("")})
	leaderelection.RunOrDie(context.Background(), leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: p.spec.Namespace, Name: p.spec.Lease},
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

// loop starts the hot loop of a leader.
func (p *replicaProgram) loop(ctx context.Context) {
	if err := p.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	p.looping.Go(func() {
		ticker := time.NewTicker(time.Millisecond)
		defer ticker.Stop()
		for {
			p.emit()
			select {
			case <-ticker.C:
			case <-p.stop:
				return
			}
		}
	})
	fmt.Println("leading")
}
