package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestLifeOfASeries goes with one series through all of its states, with real
// verbs, a real clock and short intervals.
func TestLifeOfASeries(t *testing.T) {
	t.Parallel()
	const interval, finish = time.Second, 4 * time.Second
	namespace := apiserver.Namespace(t)
	r := startRecording(t, apiserver.Config(t), events.Options{HeartbeatInterval: interval, FinishAfter: finish})
	history := watchEvents(t, r.clients, namespace)
	recorder := r.recorder()
	pod := podIn(namespace, "crashing")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-of-node-1"}}
	emitted := 0
	var last moment // when the latest occurrence was
	occur := func() moment {
		emitted++
		before := time.Now()
		recorder.Eventf(pod, node, corev1.EventTypeWarning, "BackOff", "Restarting", "restart of %s failed", pod.Name)
		last = moment{before, time.Now()}
		return last
	}

	// It happens once.
	first := occur()
	singleton := eventAbout(t, r.clients, namespace, pod.UID)
	want := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace},
		ReportingController: controller,
		ReportingInstance:   r.instance,
		Action:              "Restarting",
		Reason:              "BackOff",
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "crashing", UID: pod.UID},
		Related:             &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "uid-of-node-1"},
		Note:                "restart of crashing failed",
		Type:                corev1.EventTypeWarning,
	}
	assert.Regexp(t, `^crashing\.[0-9a-f]{16}$`, singleton.Name)
	first.requireContains(t, singleton.EventTime)
	requireEvent(t, want, singleton)
	requireSameInCore(t, r.clients, singleton)
	assert.Equal(t, "create events.events.k8s.io: 1", r.requests.String())

	// It happens again, and goes on until there were two heartbeats.
	begin := time.Now()
	second := occur()
	r.flush(t)
	ongoing := eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, ongoing.Series)
	assert.EqualValues(t, 2, ongoing.Series.Count)
	second.requireContains(t, ongoing.Series.LastObservedTime)
	assert.Equal(t, singleton.EventTime, ongoing.EventTime)
	want.Annotations = map[string]string{series.AnnotationState: "Ongoing"}
	requireEvent(t, want, ongoing)
	requireSameInCore(t, r.clients, ongoing)
	assert.Equal(t, "create events.events.k8s.io: 1, patch events.events.k8s.io: 1", r.requests.String())

	apiserver.Eventually(t, patience, func(context.Context) error {
		occur()
		if beats := requestsOf(r.Stats(), "heartbeat", "written"); beats < 2 {
			return fmt.Errorf("%d heartbeats", beats)
		}
		return nil
	})
	loop := time.Since(begin)
	beating := eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, beating.Series)
	assert.Greater(t, beating.Series.Count, int32(2))
	assert.LessOrEqual(t, int(beating.Series.Count), emitted)
	requireEvent(t, want, beating)

	// It stops.
	var finished *eventsv1.Event
	apiserver.Eventually(t, patience, func(context.Context) error {
		finished = eventAbout(t, r.clients, namespace, pod.UID)
		if got := state(finished); got != "Finished" {
			return fmt.Errorf("state is %q", got)
		}
		return nil
	})
	assert.GreaterOrEqual(t, time.Since(last.after), finish, "finished too early")
	assert.EqualValues(t, emitted, finished.Series.Count)
	last.requireContains(t, finished.Series.LastObservedTime)
	assert.Equal(t, singleton.EventTime, finished.EventTime)
	want.Annotations = map[string]string{series.AnnotationState: "Finished"}
	requireEvent(t, want, finished)
	requireSameInCore(t, r.clients, finished)
	requireStates(t, history, "", "Ongoing", "Finished")

	r.waitForgotten(t)
	stats := r.Stats()
	beats := requestsOf(stats, "heartbeat", "written")
	assert.LessOrEqual(t, beats, int((loop+finish)/interval), "heartbeats in %v and the quiet time after it", loop)
	assert.Equal(t, map[events.WriteKey]uint64{
		{Kind: "create", Outcome: "written"}:    1,
		{Kind: "series", Outcome: "written"}:    1,
		{Kind: "heartbeat", Outcome: "written"}: uint64(beats),
		{Kind: "finish", Outcome: "written"}:    1,
	}, stats.Writes)
	assert.Equal(t, fmt.Sprintf("create events.events.k8s.io: 1, patch events.events.k8s.io: %d", 2+beats), r.requests.String())
	t.Logf("%d occurrences in %v: %s", emitted, loop.Round(time.Millisecond), r.requests)

	// It happens once more: that is a new Event, beside the old one.
	again := occur()
	r.flush(t)
	found, err := eventsAbout(t.Context(), r.clients, namespace, pod.UID)
	require.NoError(t, err)
	require.Len(t, found, 2)
	old, next := &found[0], &found[1] // in the order of their names
	assert.Equal(t, finished, old, "the old one is as it was")
	assert.Regexp(t, `^`+singleton.Name+`\.[0-9a-f]{1,16}$`, next.Name)
	again.requireContains(t, next.EventTime)
	want.Annotations = nil
	assert.Nil(t, next.Series)
	requireEvent(t, want, next)
	requireSameInCore(t, r.clients, next)
	assert.Equal(t, 2, r.requests.Count("create", eventsResource), "it knew that the name is taken")
	r.requireAccounted(t, emitted)
}

// moment is when something happened: between the two.
type moment struct{ before, after time.Time }

func (m moment) requireContains(t *testing.T, got metav1.MicroTime) {
	t.Helper()
	// The API has microseconds.
	require.WithinRange(t, got.Time, m.before.Truncate(time.Microsecond), m.after)
}

// requireEvent compares all that a recorder says in an Event, but for its name,
// its count and its times.
func requireEvent(t *testing.T, want, got *eventsv1.Event) {
	t.Helper()
	got = got.DeepCopy()
	got.ObjectMeta = metav1.ObjectMeta{
		Namespace:   got.Namespace,
		Annotations: got.Annotations,
		Labels:      got.Labels,
		Finalizers:  got.Finalizers,
	}
	got.EventTime, got.Series = metav1.MicroTime{}, nil
	require.Equal(t, want, got)
}

// requireSameInCore fails the test unless core/v1 shows an Event of
// events.k8s.io/v1 field by field as it is.
func requireSameInCore(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	got, err := clients.CoreV1().Events(event.Namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
	require.NoError(t, err)
	want := &corev1.Event{
		ObjectMeta:          event.ObjectMeta,
		InvolvedObject:      event.Regarding,
		Reason:              event.Reason,
		Message:             event.Note,
		Type:                event.Type,
		EventTime:           event.EventTime,
		Action:              event.Action,
		Related:             event.Related,
		ReportingController: event.ReportingController,
		ReportingInstance:   event.ReportingInstance,
		// No source, firstTimestamp, lastTimestamp and count: these are for
		// Events that were born old.
	}
	if event.Series != nil {
		want.Series = &corev1.EventSeries{Count: event.Series.Count, LastObservedTime: event.Series.LastObservedTime}
	}
	got.SetGroupVersionKind(schema.GroupVersionKind{}) // some clients say it, some do not
	require.Equal(t, want, got)
}

// requireStates fails the test unless the one Event of a history was in the
// given states one after the other, and its count never went down.
func requireStates(t *testing.T, h *history, want ...string) {
	t.Helper()
	apiserver.Eventually(t, patience, func(context.Context) error {
		var got []string
		for _, c := range h.all() {
			if s := state(c.event); len(got) == 0 || got[len(got)-1] != s {
				got = append(got, s)
			}
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			return fmt.Errorf("states are %q, not %q", got, want)
		}
		return nil
	})
	requireCountsGrow(t, h)
}

// requireCountsGrow fails the test if the count or the time of an Event ever
// went back.
func requireCountsGrow(t *testing.T, h *history) {
	t.Helper()
	latest := map[string]*eventsv1.Event{}
	for _, c := range h.all() {
		if c.kind == watch.Deleted {
			continue
		}
		if before := latest[c.event.Name]; before != nil {
			require.GreaterOrEqual(t, occurrences(c.event), occurrences(before), "count of %s", c.event.Name)
			require.False(t, lastObserved(c.event).Before(lastObserved(before)), "time of %s", c.event.Name)
		}
		latest[c.event.Name] = c.event
	}
	require.NotEmpty(t, latest)
}

// lastObserved returns the time of the latest occurrence that an Event tells of.
func lastObserved(event *eventsv1.Event) time.Time {
	if event.Series == nil {
		return event.EventTime.Time
	}
	return event.Series.LastObservedTime.Time
}
