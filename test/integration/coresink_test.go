package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestListThroughCoreClosesStaleSeries leaves stale series of both sinks on the
// server. A process that lists them through core/v1 finishes them.
func TestListThroughCoreClosesStaleSeries(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	r := newRecordingTo(t, coreSink, apiserver.Config(t), events.Options{Namespaces: []string{namespace}})
	last := time.Now().Add(-2 * time.Hour).Truncate(time.Microsecond)
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
			Last:      last,
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
		assert.True(t, last.Equal(lastObserved(closed)), "it has not occurred since")
		requireOldFields(t, clients, closed)
	}
	assert.EqualValues(t, len(sinks), r.Stats().Restored)
	assert.Zero(t, r.requests.count("create", coreResource))
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
}
