package integration

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestRestart has a process continue the series of the one before it.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		scope  events.Scope
		newPod bool // whether the second process has another reportingInstance
		list   bool
	}{
		"by name":          {events.SameInstance, false, false},
		"by list":          {events.SameInstance, false, true},
		"new pod, by name": {events.SameController, true, false},
		"new pod, by list": {events.SameController, true, true},
	} {
		for before, sinkBefore := range sinks {
			for after, sinkAfter := range sinks {
				t.Run(before+" to "+after+" "+name, func(t *testing.T) {
					t.Parallel()
					namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
					pod := podIn(namespace, "pod")
					strangersEvent(t, clients, namespace, "stranger")
					opts := events.Options{Scope: way.scope}
					one := startRecording(t, sinkBefore, apiserver.Config(t), opts)
					emit(one.recorder(), pod, 10)
					one.Shutdown()
					first := eventAbout(t, clients, namespace, pod.UID)
					assert.Equal(t, "Ongoing", state(first))

					opts.Namespaces, opts.SkipList = []string{namespace}, !way.list
					if !way.newPod {
						opts.ReportingInstance = one.instance
					}
					two := newRecording(t, sinkAfter, apiserver.Config(t), opts)
					recorder := two.recorder()
					two.start(t)
					if way.list {
						emit(recorder, podIn(namespace, "first"), 1) // the first event of a controller makes the recorder list
						eventually(t, func(c *assert.CollectT) { assert.EqualValues(c, 1, two.Stats().Restored) })
					}
					emit(recorder, pod, 10)
					two.flush(t)
					assert.Empty(t, two.Stats().Dropped)
					if way.list {
						assert.Equal(t, 1, two.writes("list", "written"))
						assert.Zero(t, two.writes("create", "taken"))
						assert.Zero(t, two.Stats().Adopted)
					} else {
						assert.EqualValues(t, 1, two.Stats().Adopted)
						assert.Zero(t, two.Stats().Restored)
					}
					event := eventAbout(t, clients, namespace, pod.UID)
					assert.Equal(t, first.Name, event.Name)
					assert.Equal(t, series.EventTime(first), series.EventTime(event))
					assert.Equal(t, one.instance, event.ReportingInstance, "it is immutable")
					assert.Equal(t, 20, occurrences(event))
					assert.Equal(t, "Ongoing", state(event))
					switch {
					case after == "core" && before == "core":
						requireOldFields(t, clients, event)
					case after == "core":
						assert.Empty(t, event.DeprecatedSource)
						requireOldSeries(t, clients, event)
					case before == "core":
						// The deprecated fields are immutable in events.k8s.io/v1.
						assert.Equal(t, first.DeprecatedCount, event.DeprecatedCount)
						assert.Equal(t, first.DeprecatedLastTimestamp, event.DeprecatedLastTimestamp)
					}
				})
			}
		}
	}
}

// TestListLimit has a process list what the one before it has left, if the server says that
// it has few Events, and writes little.
func TestListLimit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		scope     events.Scope
		limit     int
		all       bool // namespaces
		questions int
		lists     bool
	}{
		"all namespaces":                 {events.SameInstance, 1_000_000, true, 1, true},
		"one namespace":                  {events.SameInstance, 4, false, 1, true}, // three series, and the event that makes it list
		"one namespace, of a controller": {events.SameController, 4, false, 1, true},
		"one namespace, with too many":   {events.SameInstance, 3, false, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
			clock := clocktesting.NewFakeClock(time.Now())
			opts := events.Options{Clock: clock, Scope: row.scope}
			one := startRecording(t, eventsSink, apiserver.Config(t), opts)
			for _, pod := range []string{"a", "b", "c"} {
				emit(one.recorder(), podIn(namespace, pod), 2)
			}
			one.Shutdown()

			opts.ListLimit, opts.ReportingInstance, opts.Namespaces = row.limit, one.instance, []string{namespace}
			if row.all {
				opts.Namespaces = []string{metav1.NamespaceAll}
			}
			two := startRecording(t, eventsSink, apiserver.Config(t), opts)
			emit(two.recorder(), podIn(namespace, "first"), 1)
			two.flush(t)
			eventuallyLater(t, clock, func(c *assert.CollectT) {
				require.GreaterOrEqual(c, two.writes("list", "written"), row.questions)
			})
			if !row.lists {
				clock.Step(20 * time.Minute)
				two.flush(t)
				assert.Equal(t, row.questions, two.writes("list", "written"))
				assert.Zero(t, two.Stats().Restored)
				return
			}
			for _, pod := range []string{"a", "b", "c"} {
				eventuallyLater(t, clock, func(c *assert.CollectT) {
					requireFinished(c, eventsAbout(c, clients, namespace, podIn(namespace, pod).UID))
				})
			}
			assert.EqualValues(t, 3, two.Stats().Restored)
			assert.Zero(t, two.writes("create", "taken"))
		})
	}
}

// TestFailOver has two replicas with the roles of docs/rbac compete for a Lease.
// It kills the leader in a hot loop. The new leader continues the same Event.
func TestFailOver(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string][][]string{
		"may write":          {mayWrite, mayLead},
		"may write and list": {mayWrite, mayList, mayLead},
		"in one namespace":   {mayWriteAndListInOne, mayLead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
			a := accountIn(namespace)
			a.grant(t, clients, roles...)
			history := watchEvents(t, clients, namespace)
			leader := startReplica(t, a, "replica-1")
			history.awaitWritesOf(t, "replica-1", 3)
			other := startReplica(t, a, "replica-2")
			leader.kill()
			killed := time.Now()
			history.awaitWritesOf(t, "replica-2", 3)
			t.Logf("the new leader has written three times %v after the kill", time.Since(killed).Round(time.Millisecond))
			emitted := other.finish(t)

			event := eventAbout(t, clients, namespace, replicaPod(namespace).UID)
			assert.Equal(t, "replica-1", event.ReportingInstance, "it is immutable")
			assert.Equal(t, "Ongoing", state(event), "there may be a third replica")
			history.requireSeen(t, event.Name, occurrences(event))
			var known int // to the server when the leader died
			for i, c := range history.loops() {
				assert.Equal(t, event.UID, c.event.UID)
				assert.Equal(t, event.Name, c.event.Name)
				assert.Equal(t, i == 0, c.kind == watch.Added, "%v of %s", c.kind, c.event.Name)
				if c.event.Annotations[replicaAnnotation] == "replica-1" {
					known = occurrences(c.event)
				}
			}
			assert.Equal(t, known+emitted, occurrences(event), "%d known, %d emitted by the new leader", known, emitted)
			history.requireCountsGrow(t)
			requireElectionEvents(t, clients, namespace, "replica-1", "replica-2")
		})
	}
}

func (h *history) loops() (changes []change) {
	for _, c := range h.all() {
		if c.event.Reason == "Looped" {
			changes = append(changes, c)
		}
	}
	return changes
}

func (h *history) awaitWritesOf(t *testing.T, replica string, writes int) {
	t.Helper()
	eventually(t, func(c *assert.CollectT) {
		n := 0
		for _, change := range h.loops() {
			if change.event.Annotations[replicaAnnotation] == replica {
				n++
			}
		}
		assert.GreaterOrEqual(c, n, writes, replica)
	})
}

func requireElectionEvents(t *testing.T, clients kubernetes.Interface, namespace string, leaders ...string) {
	t.Helper()
	eventually(t, func(c *assert.CollectT) {
		list, err := clients.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=LeaderElection"})
		require.NoError(c, err)
		var messages []string
		for _, event := range list.Items {
			messages = append(messages, event.Message)
		}
		for _, leader := range leaders {
			assert.Contains(c, messages, leader+" became leader")
		}
	})
}

// TestDeposedLeaderShutsDown has a leader that lost its Lease shut down while its
// successor continues the same Event. The Event counts the occurrences of both.
func TestDeposedLeaderShutsDown(t *testing.T) {
	t.Parallel()
	config, namespace := apiserver.Config(t), apiserver.Namespace(t)
	opts := events.Options{Scope: events.SameController}
	deposed, leader := startRecording(t, eventsSink, config, opts), startRecording(t, eventsSink, config, opts)
	history := watchEvents(t, leader.clients, namespace)
	pod := podIn(namespace, "looping")
	requireCount := func(want int) {
		assert.Equal(t, want, occurrences(eventAbout(t, leader.clients, namespace, pod.UID)))
	}

	emit(deposed.recorder(), pod, 10)
	deposed.flush(t)
	emit(deposed.recorder(), pod, 5)
	emit(leader.recorder(), pod, 50)
	leader.flush(t)
	requireCount(60)
	deposed.Shutdown()
	requireCount(65)
	emit(leader.recorder(), pod, 1)
	leader.flush(t)
	requireCount(66)
	history.requireSeen(t, eventAbout(t, leader.clients, namespace, pod.UID).Name, 66)
	assert.Positive(t, leader.writes("flush", "changed"))
	assert.EqualValues(t, 1, leader.Stats().Adopted)
	history.requireCountsGrow(t)
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

// replica is one of the processes of a small controller. The leader emits in a hot loop.
type replica struct {
	*events.Broadcaster
	kill    context.CancelFunc // ends its requests and its loop
	stop    chan struct{}      // closed to end the loop
	looping sync.WaitGroup
	emitted int
}

func startReplica(t *testing.T, a account, name string) *replica {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	config := a.config(apiserver.Config(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return next.RoundTrip(req)
		})
	})
	clients := apiserver.ClientsetFor(t, config)
	p := &replica{
		Broadcaster: events.NewBroadcasterWithOptions(eventsSink(clients), events.Options{
			ReportingInstance: name,
			Scope:             events.SameController,
			Namespaces:        []string{a.namespace},
			ListLimit:         -1,
			HeartbeatInterval: 200 * time.Millisecond,
			ShutdownTimeout:   2 * time.Second,
		}),
		kill: kill,
		stop: make(chan struct{}),
	}
	// As in controller-runtime, the legacy recorder writes the events about the
	// election.
	legacy := record.NewBroadcaster()
	legacy.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")})
	election := leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "backup-controller"},
			Client:    clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{
				Identity:      name,
				EventRecorder: legacy.NewRecorder(scheme.Scheme, corev1.EventSource{Component: name}),
			},
		},
		LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { p.loop(ctx, a.namespace, name) },
			OnStoppedLeading: func() {},
		},
	}
	p.looping.Add(1)
	go leaderelection.RunOrDie(ctx, election)
	t.Cleanup(func() {
		kill()
		p.Shutdown()
		legacy.Shutdown()
	})
	return p
}

func (p *replica) loop(ctx context.Context, namespace, name string) {
	defer p.looping.Done()
	recorder := p.NewRecorder(scheme.Scheme, controller).(events.AnnotatedEventRecorder)
	utilruntime.Must(p.StartRecordingToSinkWithContext(ctx))
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		recorder.AnnotatedEventf(replicaPod(namespace), nil, map[string]string{replicaAnnotation: name},
			corev1.EventTypeWarning, "Looped", "Looping", "it looped")
		p.emitted++
		select {
		case <-ticker.C:
		case <-p.stop:
			return
		case <-ctx.Done():
			return
		}
	}
}

// finish ends the loop of the leader, writes the rest, and returns how often it emitted.
func (p *replica) finish(t *testing.T) (emitted int) {
	t.Helper()
	close(p.stop)
	p.looping.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, p.Flush(ctx))
	p.Shutdown()
	return p.emitted
}
