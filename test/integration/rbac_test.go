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

// The recorders in this file write to a real server with a fake clock.

// step is how far a fake clock moves between two requests of a test. It is
// shorter than every interval of the recorder.
const step = time.Minute

// newClock returns a fake clock that has the real time.
func newClock() *clocktesting.FakeClock { return clocktesting.NewFakeClock(time.Now()) }

// startLogging is start with a log. The function that it returns finds the log
// lines that contain all the given words.
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

// eventuallyLater is eventually for a recorder with a fake clock, which it steps.
func eventuallyLater(t *testing.T, clock *clocktesting.FakeClock, check func(context.Context) error) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		err := check(ctx)
		if err != nil {
			clock.Step(step)
		}
		return err
	})
}

// TestPermissionIsRevokedAndGranted revokes a role and grants it again.
func TestPermissionIsRevokedAndGranted(t *testing.T) {
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

	// The server denies a heartbeat, a finish and a create.
	a.withdraw(t, permission, "create", "patch")
	emit(recorder, ending, 1)
	emitted++
	for range 31 {
		clock.Step(time.Minute)
		loop()
	}
	emit(recorder, podIn(namespace, "new"), 1)
	emitted++
	for _, kind := range []string{"heartbeat", "finish", "create"} {
		eventuallyLater(t, clock, func(context.Context) error {
			loop()
			return r.hasWrites(kind, "denied", 1)
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
			return errors.New("not finished")
		case len(r.written(t)) != 3:
			return errors.New("no new Event")
		}
		return r.hasWrites("heartbeat", "written", 1)
	})
	r.flush(t)
	assert.Equal(t, 6, occurrences(eventAbout(t, clients, namespace, ending.UID)))
	assert.Equal(t, "Ongoing", state(eventAbout(t, clients, namespace, hot.UID)))
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, emitted)
	history.requireCountsGrow(t)
	assert.Len(t, logged("May not write events", "create", namespace), 1)
	assert.Len(t, logged("May not write events", "patch", namespace), 1)
	assert.Len(t, logged("May not write events"), 2)
}

// TestLifeWithTheLeastPermissions takes a series through all its states as a user
// who may only create and patch.
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
	awaitFinished := func(name string) {
		t.Helper()
		eventuallyLater(t, clock, func(ctx context.Context) error {
			event, err := clients.EventsV1().Events(namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return isFinished(event)
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
		return r.hasWrites("heartbeat", "written", 1)
	})
	awaitFinished(first.Name)
	assert.Equal(t, emitted, occurrences(eventAbout(t, clients, namespace, pod.UID)))

	// Another series follows under another name. The first Event leads to it.
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
	eventually(t, func(ctx context.Context) error {
		event, err := clients.EventsV1().Events(namespace).Get(ctx, first.Name, metav1.GetOptions{})
		if err == nil && !strings.HasPrefix(event.Annotations["eventseries.dev/successor"], second.Name+" ") {
			err = fmt.Errorf("%s has no successor: %v", first.Name, event.Annotations)
		}
		return err
	})

	// A user deletes its Event.
	require.NoError(t, clients.EventsV1().Events(namespace).Delete(t.Context(), second.Name, metav1.DeleteOptions{}))
	loop()
	r.flush(t)
	awaitFinished(second.Name)
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, emitted)
	history.requireCountsGrow(t)

	assert.Len(t, logged("May not list events", namespace), 1)
	assert.Empty(t, logged("May not write events"))
	assert.Equal(t, 1, r.requests.Count("list", eventsResource), r.requests)
	assert.Equal(t, r.requests.Count("create", eventsResource)+r.requests.Count("patch", eventsResource)+1, r.requests.Total(), r.requests)
}

// TestControllerOfOneNamespace emits events about objects outside the only
// namespace that its role permits.
func TestControllerOfOneNamespace(t *testing.T) {
	t.Parallel()
	admin, namespace, other, clock := apiserver.Config(t), apiserver.Namespace(t), apiserver.Namespace(t), newClock()
	a := accountIn(namespace)
	clients := apiserver.ClientsetFor(t, admin)
	a.grant(t, clients, mayWriteAndListInOne)
	// An earlier process with the same name has left a series.
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
	// The Event about a Node is in kube-system. The Node need not exist.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + namespace, UID: types.UID("uid-of-node-of-" + namespace)}}
	emit(recorder, node, 3)
	eventuallyLater(t, clock, func(ctx context.Context) error {
		closed, err := eventsAbout(ctx, clients, namespace, left.UID)
		if err == nil && (len(closed) != 1 || state(&closed[0]) != "Finished") {
			err = errors.New("the series of the earlier process is not finished")
		}
		return err
	})
	assert.EqualValues(t, 1, r.Stats().Restored)
	assert.Equal(t, 2, occurrences(eventAbout(t, clients, namespace, left.UID)))
	assert.Equal(t, 2, occurrences(eventAbout(t, clients, namespace, podIn(namespace, "own").UID)))
	for _, namespace := range []string{other, metav1.NamespaceSystem} {
		apiserver.Eventually(t, patience, func(context.Context) error {
			if n := len(logged("May not write events", "create", namespace)); n != 1 {
				return fmt.Errorf("the log mentions %s %d times", namespace, n)
			}
			return nil
		})
	}
	assert.Len(t, logged("May not list events", other), 1)
	assert.Len(t, logged("May not list events"), 1)

	a.grant(t, clients, mayWriteAboutClusterToo)
	eventuallyLater(t, clock, func(context.Context) error {
		if n := len(r.written(t)); n != 3 { // two Pods and the Node
			return fmt.Errorf("%d Events", n)
		}
		return nil
	})
	event := eventAbout(t, clients, metav1.NamespaceSystem, node.UID)
	t.Cleanup(func() { deleteEvent(t, clients, event) })
	assert.Equal(t, 3, occurrences(event))
	assert.Empty(t, r.Stats().Dropped)
	r.Shutdown()
	assert.Equal(t, map[events.DropReason]uint64{events.DropShutdown: 2 + 1}, r.Stats().Dropped, "the events in the other namespace")
	assert.Len(t, logged("May not write events"), 2)
}
