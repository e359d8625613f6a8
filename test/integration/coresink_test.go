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
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// coreResource is how Requests calls what a compat.CoreSink writes.
const coreResource = "events"

// coreSink makes a sink that writes through core/v1.
func coreSink(clients *kubernetes.Clientset) events.EventSink {
	return &compat.CoreSink{Interface: clients.CoreV1()}
}

// TestLifeThroughCore goes with one series through all of its states, written
// through core/v1 and read through both groups.
func TestLifeThroughCore(t *testing.T) {
	t.Parallel()
	const interval, finish = time.Second, 4 * time.Second
	namespace := apiserver.Namespace(t)
	r := newRecordingTo(t, coreSink, apiserver.Config(t), events.Options{SkipList: true, HeartbeatInterval: interval, FinishAfter: finish})
	r.start(t)
	history := watchEvents(t, r.clients, namespace)
	recorder, pod := r.recorder(), podIn(namespace, "crashing")
	emitted := 0
	occur := func() { emit(recorder, pod, 1); emitted++ }

	occur()
	singleton := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Nil(t, singleton.Series)
	requireOldFields(t, r.clients, singleton)
	assert.Equal(t, "create events: 1", r.requests.String())

	occur()
	r.flush(t)
	ongoing := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Equal(t, 2, occurrences(ongoing))
	assert.Equal(t, "Ongoing", state(ongoing))
	assert.Equal(t, singleton.EventTime, ongoing.EventTime)
	requireOldFields(t, r.clients, ongoing)
	assert.Equal(t, "create events: 1, patch events: 1", r.requests.String())

	apiserver.Eventually(t, patience, func(context.Context) error {
		occur()
		if beats := requestsOf(r.Stats(), "heartbeat", "written"); beats < 2 {
			return fmt.Errorf("%d heartbeats", beats)
		}
		return nil
	})
	requireOldFields(t, r.clients, eventAbout(t, r.clients, namespace, pod.UID))

	var finished *eventsv1.Event
	apiserver.Eventually(t, patience, func(context.Context) error {
		finished = eventAbout(t, r.clients, namespace, pod.UID)
		if got := state(finished); got != "Finished" {
			return fmt.Errorf("state is %q", got)
		}
		return nil
	})
	assert.Equal(t, emitted, occurrences(finished))
	requireOldFields(t, r.clients, finished)
	requireStates(t, history, "", "Ongoing", "Finished")
	r.waitForgotten(t)
	assert.Equal(t, 1, requestsOf(r.Stats(), "finish", "written"))

	// It happens once more: that is a new Event, beside the old one.
	occur()
	r.flush(t)
	found, err := eventsAbout(t.Context(), r.clients, namespace, pod.UID)
	require.NoError(t, err)
	require.Len(t, found, 2)
	requireOldFields(t, r.clients, &found[1])
	assert.Equal(t, 2, r.requests.Count("create", coreResource))
	assert.Equal(t, r.requests.Total(), r.requests.Count("create", coreResource)+r.requests.Count("patch", coreResource))
	r.requireAccounted(t, emitted)
}

// requireOldFields fails the test unless an Event of events.k8s.io/v1 says in its
// deprecated fields what it says in the others, and core/v1 shows the same.
func requireOldFields(t *testing.T, clients kubernetes.Interface, event *eventsv1.Event) {
	t.Helper()
	second := func(at time.Time) metav1.Time { return metav1.NewTime(at.Truncate(time.Second)) }
	assert.Equal(t, corev1.EventSource{Component: event.ReportingController}, event.DeprecatedSource)
	assert.Equal(t, second(event.EventTime.Time), event.DeprecatedFirstTimestamp)
	assert.Equal(t, second(lastObserved(event)), event.DeprecatedLastTimestamp)
	assert.EqualValues(t, occurrences(event), event.DeprecatedCount)
	core, err := clients.CoreV1().Events(event.Namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
	require.NoError(t, err)
	core.TypeMeta = metav1.TypeMeta{}
	require.Equal(t, compat.ToCore(event), core)
}

// TestRestartThroughCore has a process go on in the Event of the one before it,
// where one of them at least writes through core/v1.
func TestRestartThroughCore(t *testing.T) {
	t.Parallel()
	type newSink = func(*kubernetes.Clientset) events.EventSink
	for name, sinks := range map[string]struct{ before, after newSink }{
		"core to core":   {coreSink, coreSink},
		"events to core": {eventsSink, coreSink},
		"core to events": {coreSink, eventsSink},
	} {
		for way, list := range map[string]bool{"by name": false, "by listing": true} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				namespace := apiserver.Namespace(t)
				pod := podIn(namespace, "pod")
				clients := apiserver.Clientset(t)
				strangersEvent(t, clients, namespace, "stranger")
				before := newRecordingTo(t, sinks.before, apiserver.Config(t), events.Options{SkipList: true})
				before.start(t)
				emit(before.recorder(), pod, 10)
				before.Shutdown()
				first := eventAbout(t, clients, namespace, pod.UID)

				opts := events.Options{ReportingInstance: before.instance, Namespaces: []string{namespace}, SkipList: !list}
				after := newRecordingTo(t, sinks.after, apiserver.Config(t), opts)
				recorder := after.recorder()
				after.start(t)
				if list {
					apiserver.Eventually(t, patience, func(context.Context) error {
						if after.Stats().Restored != 1 {
							return errors.New("not restored yet")
						}
						return nil
					})
				}
				emit(recorder, pod, 10)
				after.flush(t)
				event := eventAbout(t, clients, namespace, pod.UID)
				assert.Equal(t, first.Name, event.Name)
				assert.Equal(t, first.EventTime, event.EventTime)
				assert.Equal(t, 20, occurrences(event))
				assert.Equal(t, "Ongoing", state(event))
				if name == "core to events" {
					// Nobody may change them there.
					assert.Equal(t, first.DeprecatedCount, event.DeprecatedCount)
					assert.Equal(t, first.DeprecatedLastTimestamp, event.DeprecatedLastTimestamp)
				} else {
					requireOldFields(t, clients, event)
				}
				stats := after.Stats()
				assert.Empty(t, stats.Dropped)
				if list {
					assert.Equal(t, 1, requestsOf(stats, "list", "written"))
					assert.Zero(t, requestsOf(stats, "create", "taken"))
				} else {
					assert.EqualValues(t, 1, stats.Adopted)
				}
			})
		}
	}
}

// TestSuccessorThroughCore has a process meet the Event of a series that has
// ended: what leads from that Event to the new one changes nothing else in it.
func TestSuccessorThroughCore(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	pod := podIn(namespace, "pod")
	before := newRecordingTo(t, coreSink, apiserver.Config(t), events.Options{SkipList: true})
	before.start(t)
	emit(before.recorder(), pod, 3)
	before.Shutdown()
	first := eventAbout(t, clients, namespace, pod.UID)
	finished := []byte(`{"metadata":{"annotations":{"` + series.AnnotationState + `":"Finished"}}}`)
	first, err := clients.EventsV1().Events(namespace).Patch(t.Context(), first.Name, types.MergePatchType, finished, metav1.PatchOptions{})
	require.NoError(t, err)

	after := newRecordingTo(t, coreSink, apiserver.Config(t), events.Options{ReportingInstance: before.instance, SkipList: true})
	after.start(t)
	for range 2 {
		emit(after.recorder(), pod, 1)
		after.flush(t)
	}
	apiserver.Eventually(t, patience, func(context.Context) error {
		if requestsOf(after.Stats(), "successor", "written") == 0 {
			return errors.New("no successor yet")
		}
		return nil
	})
	stats := after.Stats()
	assert.Equal(t, 1, requestsOf(stats, "create", "taken"))
	assert.Equal(t, 1, requestsOf(stats, "look", "written"))
	assert.Empty(t, stats.Dropped)

	found, err := eventsAbout(t.Context(), clients, namespace, pod.UID)
	require.NoError(t, err)
	require.Len(t, found, 2)
	old, next := &found[0], &found[1] // in the order of their names
	assert.Equal(t, next.Name, strings.Fields(old.Annotations[series.AnnotationSuccessor])[0])
	requireOldFields(t, clients, old)
	requireOldFields(t, clients, next)
	assert.Equal(t, 2, occurrences(next))
	delete(old.Annotations, series.AnnotationSuccessor)
	old.ResourceVersion, old.ManagedFields, old.TypeMeta = first.ResourceVersion, first.ManagedFields, first.TypeMeta
	assert.Equal(t, first, old)
}

// TestRebuildThroughCore has a process list what nobody tends any more, as both
// sinks leave it: it is closed, and its old fields say what it was.
func TestRebuildThroughCore(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	r := newRecordingTo(t, coreSink, apiserver.Config(t), events.Options{Namespaces: []string{namespace}})
	sinks := map[string]events.EventSink{"core": coreSink(clients), "events": eventsSink(clients)}
	for name, sink := range sinks {
		left := series.Series{
			Key: series.Key{
				Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID("uid-" + name)},
				Type:                corev1.EventTypeNormal,
				Action:              "Testing",
				Reason:              "Tested",
				ReportingController: controller,
				ReportingInstance:   r.instance,
			},
			State:     series.Ongoing,
			Namespace: namespace,
			Note:      "it was tested",
			First:     time.Now().Add(-3 * time.Hour),
			Last:      time.Now().Add(-2 * time.Hour),
			Count:     4242,
		}
		left.Name = left.Key.BaseName()
		_, err := sink.Create(t.Context(), left.Event())
		require.NoError(t, err)
	}
	r.recorder() // it lists for those who have a recorder
	r.start(t)
	for name := range sinks {
		var closed *eventsv1.Event
		apiserver.Eventually(t, patience, func(context.Context) error {
			closed = eventAbout(t, clients, namespace, types.UID("uid-"+name))
			if got := state(closed); got != "Finished" {
				return fmt.Errorf("state is %q", got)
			}
			return nil
		})
		assert.Equal(t, 4242, occurrences(closed))
		requireOldFields(t, clients, closed)
	}
	assert.EqualValues(t, len(sinks), r.Stats().Restored)
	assert.Zero(t, r.requests.Count("create", coreResource))
}

// TestCoreSinkSelects lists by each field that events.k8s.io/v1 can select by:
// through core/v1 the same Events are selected.
func TestCoreSinkSelects(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	event := strangersEvent(t, clients, namespace, "one")
	other := event.DeepCopy()
	other.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: "other"}
	other.ReportingController, other.Reason, other.Type = "example.com/other", "Other", corev1.EventTypeWarning
	other.Regarding = corev1.ObjectReference{APIVersion: "v2", Kind: "Other", Namespace: namespace, Name: "another", UID: "another", ResourceVersion: "7", FieldPath: "spec"}
	_, err := clients.EventsV1().Events(namespace).Create(t.Context(), other, metav1.CreateOptions{})
	require.NoError(t, err)

	newWay, oldWay := &events.EventSinkImpl{Interface: clients.EventsV1()}, &compat.CoreSink{Interface: clients.CoreV1()}
	for selector, want := range map[string]int{
		"": 2,
		"reportingController=" + event.ReportingController:   1,
		"reportingController!=" + event.ReportingController:  1,
		"reportingController=example.com/nobody":             0,
		"reportingController=example.com/other,type=Warning": 1,
		"reason=Other":                                        1,
		"regarding.kind=Other":                                1,
		"regarding.namespace=" + namespace:                    2,
		"regarding.name=another":                              1,
		"regarding.uid=another":                               1,
		"regarding.apiVersion=v2":                             1,
		"regarding.resourceVersion=7":                         1,
		"regarding.fieldPath=spec":                            1,
		"type=Warning":                                        1,
		"metadata.name=other,metadata.namespace=" + namespace: 1,
	} {
		opts := metav1.ListOptions{FieldSelector: selector}
		wanted, err := newWay.List(t.Context(), namespace, opts)
		require.NoError(t, err, selector)
		got, err := oldWay.List(t.Context(), namespace, opts)
		require.NoError(t, err, selector)
		assert.Len(t, got.Items, want, selector)
		for i := range wanted.Items {
			wanted.Items[i].TypeMeta = metav1.TypeMeta{}
		}
		for i := range got.Items {
			got.Items[i].TypeMeta = metav1.TypeMeta{}
		}
		assert.Equal(t, wanted.Items, got.Items, selector)
	}
	for _, sink := range []events.EventLister{newWay, oldWay} {
		_, err := sink.List(t.Context(), namespace, metav1.ListOptions{FieldSelector: "reportingInstance=x"})
		require.ErrorContains(t, err, "field label not supported")
	}

	// Page by page.
	var names []string
	opts := metav1.ListOptions{Limit: 1}
	for {
		page, err := oldWay.List(t.Context(), namespace, opts)
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		names = append(names, page.Items[0].Name)
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	assert.Equal(t, []string{"one", "other"}, names)
}

// strangersCoreEvent creates an Event of another controller through core/v1, one
// that was born old.
func strangersCoreEvent(t *testing.T, clients kubernetes.Interface, namespace string) {
	t.Helper()
	_, err := clients.CoreV1().Events(namespace).Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: "stranger"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "other", UID: "other"},
		Reason:         "Intruded",
		Type:           corev1.EventTypeNormal,
		Source:         corev1.EventSource{Component: "stranger"},
		Count:          1,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}
