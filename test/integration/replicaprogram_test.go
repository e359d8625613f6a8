package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

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

// This file is what runs in a replica's process.

// How replicas compete. A leader that has died is missed after leaseDuration;
// one that is only slow, because the machine is, stays leader.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 12 * time.Second
	retryPeriod   = 500 * time.Millisecond
)

// replicaAnnotation names the replica that an occurrence is from, so that each
// state of an Event tells who has written it.
const replicaAnnotation = "example.com/replica"

// replicaProgram is a replica seen from the inside.
type replicaProgram struct {
	spec        replicaSpec
	clients     *kubernetes.Clientset
	clock       *clocktesting.FakeClock // nil: the real one
	broadcaster *events.Broadcaster
	recorder    events.AnnotatedEventRecorder
	emitted     int

	stop    chan struct{} // ends the loop of a leader
	looping sync.WaitGroup
}

// runReplica is the program's main function where it is a replica.
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
		// Nobody is there any more who would end it, whatever it is doing.
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

// do does what the test says:
//
//	emit N          as many occurrences
//	loop N          as many times an occurrence, and a minute that passes
//	wait D          the duration D passes
//	until denied    waits until the list at the start was refused
//	until restored  waits until it has brought back a series
//	restored        how many series it has brought back
//	adopted         how many were found by their name
//	flush           writes all that the server does not know
//	shutdown        shuts the broadcaster down
//	stop            ends the loop of a leader, and says how often it occurred
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
		return "", errors.New("unknown: " + command)
	}
	return "ok", nil
}

// emit is one occurrence of what all replicas report.
func (p *replicaProgram) emit() {
	p.recorder.AnnotatedEventf(replicaPod(p.spec.Namespace), nil, map[string]string{replicaAnnotation: p.spec.Name},
		corev1.EventTypeWarning, "Looped", "Looping", "it looped")
	p.emitted++
}

// replicaPod returns the Pod that replicas report about.
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

// lead competes for the Lease. When the replica has it, it says so, and is in a
// hot loop. It ends when it loses it.
func (p *replicaProgram) lead() {
	// The events about the election itself are written the old way, as they are
	// by controller-runtime.
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

// loop is the hot loop of a leader.
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
