package integration

import (
	"context"
	"errors"
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

// requireOldFields fails the test unless the deprecated fields of an Event of
// events.k8s.io/v1 agree with the others, and core/v1 shows the same.
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

// awaitRestored waits until a recording has restored n series from its list.
func awaitRestored(t *testing.T, r *recording, n uint64) {
	t.Helper()
	eventually(t, func(context.Context) error {
		if r.Stats().Restored != n {
			return errors.New("not restored yet")
		}
		return nil
	})
}

// TestRestartThroughCore has a process continue the Event of the one before it.
// At least one of them writes through core/v1.
func TestRestartThroughCore(t *testing.T) {
	t.Parallel()
	for name, sinks := range map[string]struct{ before, after newSink }{
		"core to core":   {coreSink, coreSink},
		"events to core": {eventsSink, coreSink},
		"core to events": {coreSink, eventsSink},
	} {
		for way, list := range map[string]bool{"by name": false, "by list": true} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
				pod := podIn(namespace, "pod")
				strangersEvent(t, clients, namespace, "stranger")
				before := startRecordingTo(t, sinks.before, apiserver.Config(t), events.Options{})
				emit(before.recorder(), pod, 10)
				before.Shutdown()
				first := eventAbout(t, clients, namespace, pod.UID)

				opts := events.Options{ReportingInstance: before.instance, Namespaces: []string{namespace}, SkipList: !list}
				after := newRecordingTo(t, sinks.after, apiserver.Config(t), opts)
				recorder := after.recorder()
				after.start(t)
				if list {
					awaitRestored(t, after, 1)
				}
				emit(recorder, pod, 10)
				after.flush(t)
				event := eventAbout(t, clients, namespace, pod.UID)
				assert.Equal(t, first.Name, event.Name)
				assert.Equal(t, first.EventTime, event.EventTime)
				assert.Equal(t, 20, occurrences(event))
				assert.Equal(t, "Ongoing", state(event))
				if name == "core to events" {
					// The deprecated fields are immutable in events.k8s.io/v1.
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

// TestListThroughCoreClosesStaleSeries leaves stale series of both sinks on the
// server. A process that lists them through core/v1 finishes them.
func TestListThroughCoreClosesStaleSeries(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	r := newRecordingTo(t, coreSink, apiserver.Config(t), events.Options{Namespaces: []string{namespace}})
	for name, sink := range sinks {
		stale := series.Series{
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
		stale.Name = stale.Key.BaseName()
		_, err := sink(clients).Create(t.Context(), stale.Event())
		require.NoError(t, err)
	}
	r.recorder() // the broadcaster lists the Events of its recorders
	r.start(t)
	for name := range sinks {
		closed := awaitFinished(t, clients, namespace, types.UID("uid-"+name))
		assert.Equal(t, 4242, occurrences(closed))
		requireOldFields(t, clients, closed)
	}
	assert.EqualValues(t, len(sinks), r.Stats().Restored)
	assert.Zero(t, r.requests.Count("create", coreResource))
}

// TestCoreSinkSelects lists by each field selector of events.k8s.io/v1. The list
// through core/v1 is the same.
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

	eventsLister := &events.EventSinkImpl{Interface: clients.EventsV1()}
	coreLister := &compat.CoreSink{Interface: clients.CoreV1()}
	list := func(lister events.EventLister, selector string) []eventsv1.Event {
		list, err := lister.List(t.Context(), namespace, metav1.ListOptions{FieldSelector: selector})
		require.NoError(t, err, selector)
		for i := range list.Items {
			list.Items[i].TypeMeta = metav1.TypeMeta{}
		}
		return list.Items
	}
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
		got := list(coreLister, selector)
		assert.Len(t, got, want, selector)
		assert.Equal(t, list(eventsLister, selector), got, selector)
	}
	for _, lister := range []events.EventLister{eventsLister, coreLister} {
		_, err := lister.List(t.Context(), namespace, metav1.ListOptions{FieldSelector: "reportingInstance=x"})
		require.ErrorContains(t, err, "field label not supported")
	}

	// Page by page.
	var names []string
	opts := metav1.ListOptions{Limit: 1}
	for {
		page, err := coreLister.List(t.Context(), namespace, opts)
		require.NoError(t, err)
		require.Len(t, page.Items, 1)
		names = append(names, page.Items[0].Name)
		if opts.Continue = page.Continue; opts.Continue == "" {
			break
		}
	}
	assert.Equal(t, []string{"one", "other"}, names)
}
