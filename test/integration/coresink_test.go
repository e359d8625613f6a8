package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
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
	namespace := Namespace(t)
	r := newRecordingTo(t, coreSink, Config(t), events.Options{SkipList: true, HeartbeatInterval: interval, FinishAfter: finish})
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

	Eventually(t, patience, func(context.Context) error {
		occur()
		if beats := requestsOf(r.Stats(), "heartbeat", "written"); beats < 2 {
			return fmt.Errorf("%d heartbeats", beats)
		}
		return nil
	})
	requireOldFields(t, r.clients, eventAbout(t, r.clients, namespace, pod.UID))

	var finished *eventsv1.Event
	Eventually(t, patience, func(context.Context) error {
		finished = eventAbout(t, r.clients, namespace, pod.UID)
		if got := state(finished); got != "Finished" {
			return fmt.Errorf("state is %q", got)
		}
		return nil
	})
	assert.Equal(t, emitted, occurrences(finished))
	requireOldFields(t, r.clients, finished)
	requireStates(t, history, "", "Ongoing", "Finished")
	stats := r.Stats()
	assert.Zero(t, stats.Tracked)
	assert.Equal(t, 1, requestsOf(stats, "finish", "written"))

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
				namespace := Namespace(t)
				pod := podIn(namespace, "pod")
				clients := Clientset(t)
				strangersEvent(t, clients, namespace, "stranger")
				before := newRecordingTo(t, sinks.before, Config(t), events.Options{SkipList: true})
				before.start(t)
				emit(before.recorder(), pod, 10)
				before.Shutdown()
				first := eventAbout(t, clients, namespace, pod.UID)

				opts := events.Options{ReportingInstance: before.instance, Namespaces: []string{namespace}, SkipList: !list}
				after := newRecordingTo(t, sinks.after, Config(t), opts)
				recorder := after.recorder()
				after.start(t)
				if list {
					Eventually(t, patience, func(context.Context) error {
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

// TestCoreSinkSelects lists by each field that events.k8s.io/v1 can select by:
// through core/v1 the same Events are selected.
func TestCoreSinkSelects(t *testing.T) {
	t.Parallel()
	namespace, clients := Namespace(t), Clientset(t)
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
