package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestLifeOfASeries takes a series through all its states, with the real clock
// and short intervals. It writes through each API group and reads both.
func TestLifeOfASeries(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		sink     newSink
		resource string
		require  func(*testing.T, kubernetes.Interface, *eventsv1.Event) // what core/v1 shows
	}{
		"events.k8s.io": {eventsSink, eventsResource, requireNoOldFields},
		"core":          {coreSink, coreResource, requireOldFields},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testLifeOfASeries(t, row.sink, row.resource, row.require)
		})
	}
}

func testLifeOfASeries(t *testing.T, sink newSink, resource string, requireCore func(*testing.T, kubernetes.Interface, *eventsv1.Event)) {
	const interval, finishAfter = time.Second, 4 * time.Second
	namespace := apiserver.Namespace(t)
	r := startRecording(t, sink, apiserver.Config(t), events.Options{HeartbeatInterval: interval, FinishAfter: finishAfter, MaxWindow: finishAfter})
	history := watchEvents(t, r.clients, namespace)
	recorder := r.recorder()
	pod := podIn(namespace, "crashing")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-of-node-1"}}
	emitted := 0
	var last moment // of the latest occurrence
	occur := func() moment {
		emitted++
		before := time.Now()
		recorder.Eventf(pod, node, corev1.EventTypeWarning, "BackOff", "Restarting", "restart of %s failed", pod.Name)
		last = moment{before, time.Now()}
		return last
	}
	want := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{series.LabelRelatedUID: string(node.UID)}},
		ReportingController: controller,
		ReportingInstance:   r.instance,
		Action:              "Restarting",
		Reason:              "BackOff",
		Regarding:           corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "crashing", UID: pod.UID},
		Related:             &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-1", UID: "uid-of-node-1"},
		Note:                "restart of crashing failed",
		Type:                corev1.EventTypeWarning,
	}
	requireWanted := func(event *eventsv1.Event) {
		requireEvent(t, want, event)
		requireCore(t, r.clients, event)
	}

	first := occur()
	singleton := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Regexp(t, `^crashing\.[0-9a-f]{16}$`, singleton.Name)
	first.requireContains(t, series.EventTime(singleton))
	assert.Nil(t, singleton.Series)
	requireWanted(singleton)
	assert.Equal(t, fmt.Sprintf("create %s: 1", resource), r.requests.String())

	// The second occurrence makes it a series.
	begin := time.Now()
	second := occur()
	r.flush(t)
	ongoing := eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, ongoing.Series)
	assert.EqualValues(t, 2, ongoing.Series.Count)
	second.requireContains(t, ongoing.Series.LastObservedTime)
	assert.Equal(t, series.EventTime(singleton), series.EventTime(ongoing))
	want.Labels[series.LabelState] = "Ongoing"
	want.Annotations = map[string]string{series.AnnotationHeartbeat: "1s", series.AnnotationWindow: finishAfter.String()}
	requireWanted(ongoing)
	assert.Equal(t, fmt.Sprintf("create %s: 1, patch %[1]s: 1", resource), r.requests.String())

	eventually(t, func(c *assert.CollectT) {
		occur()
		assert.GreaterOrEqual(c, r.writes("heartbeat", "written"), 2)
	})
	loop := time.Since(begin)
	beating := eventAbout(t, r.clients, namespace, pod.UID)
	require.NotNil(t, beating.Series)
	assert.Greater(t, beating.Series.Count, int32(2))
	assert.LessOrEqual(t, int(beating.Series.Count), emitted)
	requireWanted(beating)

	finished := awaitFinished(t, r.clients, namespace, pod.UID)
	assert.GreaterOrEqual(t, time.Since(last.after), finishAfter, "finished too early")
	assert.EqualValues(t, emitted, finished.Series.Count)
	last.requireContains(t, finished.Series.LastObservedTime)
	assert.Equal(t, series.EventTime(singleton), series.EventTime(finished))
	want.Labels[series.LabelState] = "Finished"
	requireWanted(finished)
	history.requireStates(t, "", "Ongoing", "Finished")

	// The broadcaster gets the last response after the server has the write.
	eventually(t, func(c *assert.CollectT) { assert.Zero(c, r.Stats().Waiting) })
	beats := r.writes("heartbeat", "written")
	assert.LessOrEqual(t, beats, int((loop+finishAfter)/interval), "heartbeats in %v and until the finish", loop)
	for _, kind := range []string{"create", "series", "finish"} {
		assert.Equal(t, 1, r.writes(kind, "written"), kind)
	}
	assert.Equal(t, 3+beats, outcomes(r.Stats(), ""))
	assert.Equal(t, fmt.Sprintf("create %s: 1, patch %[1]s: %d", resource, 2+beats), r.requests.String())
	t.Logf("%d occurrences in %v: %s", emitted, loop.Round(time.Millisecond), r.requests)

	// The next occurrence continues the Event.
	again := occur()
	r.flush(t)
	next := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Equal(t, finished.UID, next.UID)
	assert.EqualValues(t, emitted, next.Series.Count)
	again.requireContains(t, next.Series.LastObservedTime)
	assert.Equal(t, 1, r.requests.count("create", resource))
	r.requireAccounted(t, emitted)
}

// moment is the time of an occurrence: between the two.
type moment struct{ before, after time.Time }

func (m moment) requireContains(t *testing.T, got metav1.MicroTime) {
	t.Helper()
	// The API has microseconds.
	require.WithinRange(t, got.Time, m.before.Truncate(time.Microsecond), m.after)
}

// requireEvent compares what a recorder says in an Event, except for the name,
// the count, the times, and the deprecated fields.
func requireEvent(t *testing.T, want, got *eventsv1.Event) {
	t.Helper()
	got = got.DeepCopy()
	got.ObjectMeta = metav1.ObjectMeta{
		Namespace:   got.Namespace,
		Annotations: got.Annotations,
		Labels:      got.Labels,
		Finalizers:  got.Finalizers,
	}
	if delete(got.Annotations, series.AnnotationEventTime); len(got.Annotations) == 0 {
		got.Annotations = nil
	}
	got.EventTime, got.Series = metav1.MicroTime{}, nil
	got.DeprecatedSource, got.DeprecatedCount = corev1.EventSource{}, 0
	got.DeprecatedFirstTimestamp, got.DeprecatedLastTimestamp = metav1.Time{}, metav1.Time{}
	require.Equal(t, want, got)
}

func requireNoOldFields(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	assert.Zero(t, event.DeprecatedSource)
	assert.Zero(t, event.DeprecatedFirstTimestamp)
	assert.Zero(t, event.DeprecatedLastTimestamp)
	assert.Zero(t, event.DeprecatedCount)
	requireSameInCore(t, clients, event)
}

func requireOldFields(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	assert.Equal(t, corev1.EventSource{Component: event.ReportingController, Host: event.ReportingInstance}, event.DeprecatedSource)
	second := func(at time.Time) metav1.Time { return metav1.NewTime(at.Truncate(time.Second)) }
	assert.Equal(t, second(series.EventTime(event).Time), event.DeprecatedFirstTimestamp)
	assert.Equal(t, second(lastObserved(event)), event.DeprecatedLastTimestamp)
	assert.EqualValues(t, occurrences(event), event.DeprecatedCount)
	requireSameInCore(t, clients, event)
}

// requireSameInCore fails the test unless core/v1 shows an Event as
// TestConversionAgreesWithTheServer requires.
func requireSameInCore(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	core, err := clients.CoreV1().Events(event.Namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
	require.NoError(t, err)
	core.TypeMeta = metav1.TypeMeta{} // only some clients set it
	require.Equal(t, compat.ToCore(event), core)
}

// TestEventTTL uses a server that deletes Events after a few seconds.
func TestEventTTL(t *testing.T) {
	const ttl = 6 * time.Second
	config := apiserver.ConfigOf(t, apiserver.Start(t, controlplane.Options{EventTTL: ttl}))
	clients := apiserver.ClientsetFor(t, config)
	kinds := func(h *history) map[watch.EventType]int {
		n := map[watch.EventType]int{}
		for _, c := range h.all() {
			n[c.kind]++
		}
		return n
	}

	t.Run("the recorder recreates an Event", func(t *testing.T) {
		t.Parallel()
		namespace := apiserver.NamespaceOn(t, clients)
		opts := events.Options{HeartbeatInterval: ttl + 3*time.Second, FinishAfter: ttl + 4*time.Second}
		r := startRecording(t, eventsSink, config, opts)
		history := watchEvents(t, clients, namespace)
		recorder, pod := r.recorder().(events.AnnotatedEventRecorder), podIn(namespace, "looping")
		emitted := 0
		occur := func() {
			emitted++
			recorder.AnnotatedEventf(pod, nil, map[string]string{"example.com/a": "1"},
				corev1.EventTypeWarning, "Looped", "Looping", "it looped")
		}
		occur()
		r.flush(t)
		original := eventAbout(t, clients, namespace, pod.UID)
		require.NoError(t, clients.EventsV1().Events(namespace).Delete(t.Context(), original.Name, metav1.DeleteOptions{}))
		for n := range 2 { // after the deletion, and after the Event has expired
			eventually(t, func(c *assert.CollectT) {
				occur()
				assert.Equal(c, n+1, r.writes("recreate", "written"))
			})
		}
		assert.Equal(t, 1, r.writes("heartbeat", "gone"), "it expired")

		// The Event expires once more before the series finishes.
		finished := awaitFinished(t, clients, namespace, pod.UID)
		requireAccounted(t, emitted, r.Stats(), []eventsv1.Event{*finished})
		assert.Empty(t, r.Stats().Dropped)
		history.requireStates(t, "", "Ongoing", "Finished")
		for _, c := range history.all() {
			assert.Equal(t, original.Name, c.event.Name)
			assert.Equal(t, original.EventTime, c.event.EventTime)
			assert.Equal(t, "1", c.event.Annotations["example.com/a"])
		}
		assert.GreaterOrEqual(t, kinds(history)[watch.Added], 4)
		assert.GreaterOrEqual(t, kinds(history)[watch.Deleted], 3)
		t.Logf("%d occurrences, %v: %s", emitted, kinds(history), r.requests)
	})

	// An occurrence after the longest window counts, and the series stays Finished. It also
	// renews the TTL. A process that follows finds the Event by its name.
	t.Run("an event that is no loop counts in one Event", func(t *testing.T) {
		t.Parallel()
		namespace := apiserver.NamespaceOn(t, clients)
		pod := podIn(namespace, "slow")
		opts := events.Options{HeartbeatInterval: time.Second, FinishAfter: time.Second, MaxWindow: time.Second, EventTTL: ttl}
		history := watchEvents(t, clients, namespace)
		const times = 6
		for n := range times {
			r := startRecording(t, eventsSink, config, opts)
			opts.ReportingInstance = r.instance
			emit(r.recorder(), pod, 1)
			r.flush(t)
			if n%2 == 1 {
				<-time.After(ttl / 2) // longer than the window, and shorter than the TTL
				emit(r.recorder(), pod, 1)
			}
			r.Shutdown()
			<-time.After(ttl / 2)
		}
		event := eventAbout(t, clients, namespace, pod.UID)
		assert.Equal(t, times+times/2, occurrences(event))
		assert.Equal(t, 1, kinds(history)[watch.Added])
		assert.Zero(t, kinds(history)[watch.Deleted])
		history.requireCountsGrow(t)
		for _, c := range history.all() {
			assert.NotEqual(t, "Ongoing", state(c.event))
		}
	})
}

func TestNamespaceBeingDeleted(t *testing.T) {
	apiserver.Program(t) // a cluster would delete the Events at any time
	t.Parallel()
	doomed, other := apiserver.Namespace(t), apiserver.Namespace(t)
	r := startRecording(t, eventsSink, apiserver.Config(t), events.Options{})
	recorder := r.recorder()
	before, after, elsewhere := podIn(doomed, "before"), podIn(doomed, "after"), podIn(other, "elsewhere")
	emit(recorder, before, 2)
	emit(recorder, elsewhere, 2)
	r.flush(t)
	terminate(t, r.clients, doomed)
	r.requests.reset()
	requireDropped := func(want uint64) {
		assert.Equal(t, map[events.DropReason]uint64{"NamespaceTerminating": want}, r.Stats().Dropped)
	}

	// The server rejects new Events, which ends the requests until they are due again.
	emit(recorder, after, 1)
	r.flush(t)
	requireDropped(1)
	emit(recorder, after, 1_000)
	r.flush(t)
	assert.Equal(t, "create events.events.k8s.io: 2", r.requests.String(), "a flush tries what was refused once more")
	requireDropped(1 + 1_000)

	emit(recorder, before, 1)
	r.flush(t)
	event := eventAbout(t, r.clients, doomed, before.UID)
	assert.Equal(t, 3, occurrences(event))

	// The recorder cannot recreate an Event that is deleted.
	require.NoError(t, r.clients.EventsV1().Events(doomed).Delete(t.Context(), event.Name, metav1.DeleteOptions{}))
	emit(recorder, before, 1)
	r.flush(t)
	requireDropped(1 + 1_000 + 4)

	emit(recorder, elsewhere, 1)
	emit(recorder, podIn(other, "new"), 1)
	r.flush(t)
	assert.Equal(t, 3, occurrences(eventAbout(t, r.clients, other, elsewhere.UID)))
	assert.Equal(t, 1, occurrences(eventAbout(t, r.clients, other, podIn(other, "new").UID)))

	r.Shutdown()
	requireDropped(1_001 + 4)
	r.requireAccounted(t, 1_001+4+3+1)
}

// terminate deletes a namespace in which an object with a finalizer remains, and
// waits until the server rejects new objects in it.
func terminate(t *testing.T, clients kubernetes.Interface, namespace string) {
	t.Helper()
	configMaps := clients.CoreV1().ConfigMaps(namespace)
	_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "held", Finalizers: []string{"example.com/held"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := apiserver.CleanupContext()
		defer cancel()
		_, err := configMaps.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	})
	require.NoError(t, clients.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	eventually(t, func(c *assert.CollectT) {
		_, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-"}}, metav1.CreateOptions{})
		assert.True(c, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), "%v", err)
	})
}

func TestNamespaceThatCannotExist(t *testing.T) {
	t.Parallel()
	namespace := apiserver.Namespace(t)
	r := startRecording(t, eventsSink, apiserver.Config(t), events.Options{})
	recorder := r.recorder()
	names := []string{
		"Not_A_Namespace", "with space", "a/b", ".", "..", "%2e", "a?b#c", "größe", "not\xffUTF-8", strings.Repeat("n", 254),
	}
	for _, name := range names {
		emit(recorder, podIn(name, "nowhere"), 1)
	}
	emit(recorder, podIn(namespace, "somewhere"), 1)
	r.flushWithin(t, 5*time.Second)
	assert.EqualValues(t, len(names), dropped(r.Stats()), r.Stats().Dropped)
	r.Shutdown()
	r.requireAccounted(t, len(names)+1)
}
