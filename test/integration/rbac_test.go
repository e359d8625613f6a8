package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// In this file the server is real and the recorder's time is the test's, which
// can so see what happens two minutes or half an hour later.

// step is how much of that time passes between two looks at the server. It is
// less than any interval of the recorder, so that nothing is passed over.
const step = time.Minute

// newClock returns a clock that stands still until it is stepped.
func newClock() *clocktesting.FakeClock { return clocktesting.NewFakeClock(time.Now()) }

// startLogging is start for tests that look at what is logged.
func (r *recording) startLogging(t *testing.T) (lines func(words ...string) []string) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	require.NoError(t, r.StartRecordingToSinkWithContext(klog.NewContext(t.Context(), logger)))
	sink, ok := logger.GetSink().(ktesting.Underlier)
	require.True(t, ok)
	return func(words ...string) (found []string) {
	line:
		for line := range strings.Lines(sink.GetBuffer().String()) {
			for _, word := range words {
				if !strings.Contains(line, word) {
					continue line
				}
			}
			found = append(found, line)
		}
		return found
	}
}

// eventuallyLater is Eventually for what takes the recorder's time as well.
func eventuallyLater(t *testing.T, clock *clocktesting.FakeClock, check func(context.Context) error) {
	t.Helper()
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			clock.Step(step)
		}
		return err
	})
}

// untilDenied waits until requests of a kind were denied that many times.
func (r *recording) untilDenied(t *testing.T, kind string, times int) {
	t.Helper()
	apiserver.Eventually(t, patience, func(context.Context) error {
		if n := requestsOf(r.Stats(), kind, "denied"); n < times {
			return fmt.Errorf("%d requests of kind %s were denied", n, kind)
		}
		return nil
	})
}

// A controller is often there before its roles are.
func TestPermissionComesLate(t *testing.T) {
	t.Parallel()
	const news = 200
	admin, namespace, clock := apiserver.Config(t), apiserver.Namespace(t), newClock()
	a := accountIn(namespace)
	r := newRecording(t, a.config(admin), events.Options{Clock: clock, QPS: -1})
	logged := r.startLogging(t)
	recorder, hot, emitted := r.recorder(), podIn(namespace, "looping"), 0
	loop := func(n int) {
		emit(recorder, hot, n)
		emitted += n
	}
	for i := range news {
		emit(recorder, podIn(namespace, fmt.Sprintf("new-%d", i)), 1)
		emitted++
	}
	loop(1_000)
	r.untilDenied(t, "create", news+1)
	for range 60 {
		clock.Step(time.Second)
		loop(1)
	}
	assert.InDelta(t, news+1, requestsOf(r.Stats(), "create", "denied"), 1, "nothing is asked again within two minutes, but by a singleton that becomes a series")
	assert.Equal(t, news+1, r.Stats().Tracked)
	assert.Empty(t, r.written(t))

	a.grant(t, r.clients, mayWrite)
	eventuallyLater(t, clock, func(context.Context) error {
		loop(1)
		if n := len(r.written(t)); n != news+1 {
			return fmt.Errorf("%d Events of %d", n, news+1)
		}
		return nil
	})
	r.flush(t)
	assert.Equal(t, emitted-news, occurrences(eventAbout(t, r.clients, namespace, hot.UID)))
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, emitted)
	assert.Len(t, logged("May not write events", "create", namespace), 1)
	assert.Len(t, logged("May not write events"), 1)
	t.Logf("%d occurrences: %s", emitted, r.requests)
}

// Roles are taken away by mistake, and come back.
func TestPermissionGoesAndComesBack(t *testing.T) {
	t.Parallel()
	admin, namespace, clock := apiserver.Config(t), apiserver.Namespace(t), newClock()
	a := accountIn(namespace)
	clients := apiserver.ClientsetFor(t, admin)
	permission := a.grant(t, clients, mayWrite)
	r := newRecording(t, a.config(admin), events.Options{Clock: clock})
	logged := r.startLogging(t)
	recorder, hot, ending, emitted := r.recorder(), podIn(namespace, "looping"), podIn(namespace, "ending"), 0
	loop := func() {
		emit(recorder, hot, 1)
		emitted++
	}
	loop()
	loop()
	emit(recorder, ending, 5)
	emitted += 5
	r.flush(t)
	history := watchEvents(t, clients, namespace)

	// A heartbeat, a closing write, and what is new meet a server that refuses.
	a.withdraw(t, permission, "create", "patch")
	emit(recorder, ending, 1)
	emitted++
	for range 31 {
		clock.Step(time.Minute)
		loop()
	}
	emit(recorder, podIn(namespace, "new"), 1)
	emitted++
	for kind, times := range map[string]int{"heartbeat": 1, "finish": 1, "create": 1} {
		eventuallyLater(t, clock, func(context.Context) error {
			loop()
			if n := requestsOf(r.Stats(), kind, "denied"); n < times {
				return fmt.Errorf("%d requests of kind %s were denied", n, kind)
			}
			return nil
		})
	}

	a.grant(t, clients, mayWrite)
	eventuallyLater(t, clock, func(ctx context.Context) error {
		loop()
		closed, err := eventsAbout(ctx, clients, namespace, ending.UID)
		switch {
		case err != nil:
			return err
		case len(closed) != 1 || state(&closed[0]) != "Finished":
			return errors.New("not closed")
		case len(r.written(t)) != 3:
			return errors.New("nothing new")
		case requestsOf(r.Stats(), "heartbeat", "written") == 0:
			return errors.New("no heartbeat")
		}
		return nil
	})
	r.flush(t)
	assert.Equal(t, 6, occurrences(eventAbout(t, clients, namespace, ending.UID)))
	assert.Equal(t, "Ongoing", state(eventAbout(t, clients, namespace, hot.UID)))
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, emitted)
	requireNothingGoesBack(t, history)
	assert.Len(t, logged("May not write events", "create", namespace), 1)
	assert.Len(t, logged("May not write events", "patch", namespace), 1)
	assert.Len(t, logged("May not write events"), 2)
}

// TestLifeWithTheLeastPermissions has everything happen that can happen to a
// series, by a user who may create and patch, and nothing else.
func TestLifeWithTheLeastPermissions(t *testing.T) {
	t.Parallel()
	admin, namespace, clock := apiserver.Config(t), apiserver.Namespace(t), newClock()
	a := accountIn(namespace)
	clients := apiserver.ClientsetFor(t, admin)
	a.grant(t, clients, mayWrite)
	r := newRecording(t, a.config(admin), events.Options{Clock: clock, Namespaces: []string{namespace}})
	logged := r.startLogging(t)
	history := watchEvents(t, clients, namespace)
	recorder, pod, emitted := r.recorder(), podIn(namespace, "looping"), 0
	loop := func() {
		emit(recorder, pod, 1)
		emitted++
	}
	untilState := func(name, want string) {
		t.Helper()
		eventuallyLater(t, clock, func(ctx context.Context) error {
			event, err := clients.EventsV1().Events(namespace).Get(ctx, name, metav1.GetOptions{})
			if err == nil && state(event) != want {
				err = fmt.Errorf("%s is %q", name, state(event))
			}
			return err
		})
	}

	loop()
	r.flush(t)
	first := eventAbout(t, clients, namespace, pod.UID)
	assert.Empty(t, state(first), "a singleton")
	loop()
	r.flush(t)
	assert.Equal(t, "Ongoing", state(eventAbout(t, clients, namespace, pod.UID)))
	eventuallyLater(t, clock, func(context.Context) error {
		loop()
		if requestsOf(r.Stats(), "heartbeat", "written") == 0 {
			return errors.New("no heartbeat")
		}
		return nil
	})
	untilState(first.Name, "Finished")
	assert.Equal(t, emitted, occurrences(eventAbout(t, clients, namespace, pod.UID)))

	// It comes back and goes on, under another name, to which the first leads.
	loop()
	loop()
	r.flush(t)
	var second *eventsv1.Event
	for _, event := range r.written(t) {
		if event.Name != first.Name {
			second = &event
		}
	}
	require.NotNil(t, second)
	assert.Equal(t, "Ongoing", state(second))
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		event, err := clients.EventsV1().Events(namespace).Get(ctx, first.Name, metav1.GetOptions{})
		if err == nil && !strings.HasPrefix(event.Annotations["eventseries.dev/successor"], second.Name+" ") {
			err = fmt.Errorf("%s leads nowhere: %v", first.Name, event.Annotations)
		}
		return err
	})

	// Somebody deletes it.
	require.NoError(t, clients.EventsV1().Events(namespace).Delete(t.Context(), second.Name, metav1.DeleteOptions{}))
	loop()
	r.flush(t)
	untilState(second.Name, "Finished")
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, emitted)
	requireNothingGoesBack(t, history)

	assert.Len(t, logged("May not list events", namespace), 1)
	assert.Empty(t, logged("May not write events"))
	assert.Equal(t, 1, r.requests.Count("list", eventsResource), r.requests)
	assert.Equal(t, r.requests.Count("create", eventsResource)+r.requests.Count("patch", eventsResource)+1, r.requests.Total(), r.requests)
}

// TestControllerOfOneNamespace has a namespaced role, and is asked for more.
func TestControllerOfOneNamespace(t *testing.T) {
	t.Parallel()
	admin, namespace, other, clock := apiserver.Config(t), apiserver.Namespace(t), apiserver.Namespace(t), newClock()
	a := accountIn(namespace)
	clients := apiserver.ClientsetFor(t, admin)
	a.grant(t, clients, mayWriteAndListInOne)
	// An earlier process of the same name has left a series.
	opts := events.Options{Clock: clock, ReportingInstance: "backup-" + namespace, SkipList: true, ShutdownTimeout: 2 * time.Second}
	earlier := newRecording(t, a.config(admin), opts)
	earlier.start(t)
	left := podIn(namespace, "left")
	emit(earlier.recorder(), left, 2)
	earlier.Shutdown()

	opts.SkipList, opts.Namespaces = false, []string{other, namespace}
	r := newRecording(t, a.config(admin), opts)
	recorder := r.recorder()
	logged := r.startLogging(t)
	emit(recorder, podIn(namespace, "own"), 2)
	emit(recorder, podIn(other, "foreign"), 2)
	emit(recorder, podIn(other, "foreign too"), 1)
	// About a Node, and so in kube-system.
	node := nodeOf(namespace)
	emit(recorder, node, 3)
	eventuallyLater(t, clock, func(ctx context.Context) error {
		closed, err := eventsAbout(ctx, clients, namespace, left.UID)
		if err == nil && (len(closed) != 1 || state(&closed[0]) != "Finished") {
			err = errors.New("what the earlier process has left is not closed")
		}
		return err
	})
	assert.EqualValues(t, 1, r.Stats().Restored)
	assert.Equal(t, 2, occurrences(eventAbout(t, clients, namespace, left.UID)))
	assert.Equal(t, 2, occurrences(eventAbout(t, clients, namespace, podIn(namespace, "own").UID)))
	for _, namespace := range []string{other, metav1.NamespaceSystem} {
		apiserver.Eventually(t, patience, func(context.Context) error {
			if n := len(logged("May not write events", "create", namespace)); n != 1 {
				return fmt.Errorf("%s is mentioned %d times", namespace, n)
			}
			return nil
		})
	}
	assert.Len(t, logged("May not list events", other), 1)
	assert.Len(t, logged("May not list events"), 1)

	a.grant(t, clients, mayWriteAboutClusterToo)
	eventuallyLater(t, clock, func(context.Context) error {
		if n := len(r.written(t)); n != 3 { // and two pods in the other namespace
			return fmt.Errorf("%d Events", n)
		}
		return nil
	})
	event := eventAbout(t, clients, metav1.NamespaceSystem, node.UID)
	t.Cleanup(func() { deleteEvent(t, clients, event) })
	assert.Equal(t, 3, occurrences(event))
	assert.Empty(t, r.Stats().Dropped)
	r.Shutdown()
	assert.Equal(t, map[events.DropReason]uint64{events.DropShutdown: 2 + 1}, r.Stats().Dropped, "what is in the other namespace")
	assert.Len(t, logged("May not write events"), 2)
}

// A cluster role reaches to where the Events about cluster-scoped objects are.
func TestClusterScopedWithTheClusterRole(t *testing.T) {
	t.Parallel()
	for _, where := range []string{metav1.NamespaceSystem, metav1.NamespaceDefault} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			admin, namespace := apiserver.Config(t), apiserver.Namespace(t)
			a := accountIn(namespace)
			a.grant(t, apiserver.ClientsetFor(t, admin), mayWrite)
			r := startRecording(t, a.config(admin), events.Options{ClusterNamespace: where})
			node := nodeOf(namespace)
			emit(r.recorder(), node, 2)
			r.flush(t)
			event := eventAbout(t, r.clients, where, node.UID)
			t.Cleanup(func() { deleteEvent(t, r.clients, event) })
			assert.Equal(t, 2, occurrences(event))
			r.requireAccounted(t, 2)
		})
	}
}

// nodeOf returns a Node that no other test has. It need not exist.
func nodeOf(namespace string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node-of-" + namespace, UID: types.UID("uid-of-node-of-" + namespace),
	}}
}

// requireNothingGoesBack fails the test if the count or the time of an Event was
// ever smaller than before.
func requireNothingGoesBack(t *testing.T, h *history) {
	t.Helper()
	type latest struct {
		count int
		time  time.Time
	}
	seen := map[types.UID]latest{}
	for _, c := range h.all() {
		before, now := seen[c.event.UID], latest{count: occurrences(c.event)}
		if c.event.Series != nil {
			now.time = c.event.Series.LastObservedTime.Time
		}
		require.GreaterOrEqual(t, now.count, before.count, "count of %s", c.event.Name)
		require.False(t, now.time.Before(before.time), "time of %s: %v before %v", c.event.Name, now.time, before.time)
		seen[c.event.UID] = now
	}
	require.NotEmpty(t, seen)
}
