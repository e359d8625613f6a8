package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

const generated = 200

// TestConversionAgreesWithTheServer writes Events through one API group and reads
// them through the other. compat converts all fields as the server does. The test
// ignores apiVersion and kind, which only some clients set.
func TestConversionAgreesWithTheServer(t *testing.T) {
	t.Parallel()
	t.Run("events.k8s.io/v1 to core/v1", func(t *testing.T) {
		t.Parallel()
		namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
		for i := range uint64(generated) {
			event := generateEvent(rand.New(rand.NewPCG(1, i)), namespace, fmt.Sprintf("event-%d", i))
			written, err := clients.EventsV1().Events(namespace).Create(t.Context(), event, metav1.CreateOptions{})
			require.NoError(t, err)
			read, err := clients.CoreV1().Events(namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
			require.NoError(t, err)
			requireConverted(t, event, written, read, compat.ToCore, compat.FromCore)
		}
	})
	t.Run("core/v1 to events.k8s.io/v1", func(t *testing.T) {
		t.Parallel()
		namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
		legacy := 0
		for i := range uint64(generated) {
			event := generateCoreEvent(rand.New(rand.NewPCG(2, i)), namespace, fmt.Sprintf("event-%d", i))
			written, err := clients.CoreV1().Events(namespace).Create(t.Context(), event, metav1.CreateOptions{})
			require.NoError(t, err)
			read, err := clients.EventsV1().Events(namespace).Get(t.Context(), event.Name, metav1.GetOptions{})
			require.NoError(t, err)
			requireConverted(t, event, written, read, compat.FromCore, compat.ToCore)
			if read.EventTime.IsZero() {
				legacy++
				require.Nil(t, read.Series, "an Event without eventTime")
			}
		}
		assert.Positive(t, legacy)
		assert.Less(t, legacy, generated)
	})
}

type eventObject interface {
	runtime.Object
	metav1.Object
}

// requireConverted fails the test unless the conversions of compat make the
// written Event and the read one of each other, and the server changed nothing in
// what was sent.
func requireConverted[W, R eventObject](t *testing.T, sent, written W, read R, to func(W) R, from func(R) W) {
	t.Helper()
	written.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	read.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	require.Equal(t, to(written), read)
	require.Equal(t, written, from(read))
	sent.SetUID(read.GetUID())
	sent.SetResourceVersion(read.GetResourceVersion())
	sent.SetCreationTimestamp(read.GetCreationTimestamp())
	sent.SetManagedFields(read.GetManagedFields())
	require.Equal(t, to(sent), read)
}

func generateEvent(r *rand.Rand, namespace, name string) *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        name,
			Annotations: maybe(r, map[string]string{word(r): word(r), "eventseries.dev/last-note": "note"}),
			Labels:      maybe(r, map[string]string{word(r): word(r), "eventseries.dev/state": "Ongoing"}),
			OwnerReferences: maybe(r, []metav1.OwnerReference{
				{APIVersion: "v1", Kind: word(r), Name: word(r), UID: types.UID(word(r)), Controller: maybe(r, new(true))},
			}),
		},
		EventTime:           microTime(r),
		ReportingController: "example.com/" + word(r),
		ReportingInstance:   word(r),
		Action:              word(r),
		Reason:              word(r),
		Regarding:           reference(r),
		Note:                maybe(r, strings.Repeat(word(r)+" …", 1+r.IntN(20))),
		Type:                []string{corev1.EventTypeNormal, corev1.EventTypeWarning}[r.IntN(2)],
	}
	event.Regarding.Namespace = namespace
	related := reference(r)
	event.Related = maybe(r, &related)
	event.Series = maybe(r, &eventsv1.EventSeries{Count: 2 + r.Int32N(1<<30), LastObservedTime: microTime(r)})
	return event
}

// generateCoreEvent returns an Event that is valid in core/v1: a legacy one
// without eventTime, or one with both the new and the deprecated fields.
func generateCoreEvent(r *rand.Rand, namespace, name string) *corev1.Event {
	event := compat.ToCore(generateEvent(r, namespace, name))
	event.Source = corev1.EventSource{Component: maybe(r, word(r)), Host: maybe(r, word(r))}
	event.FirstTimestamp = maybe(r, metav1.NewTime(microTime(r).Truncate(time.Second)))
	event.LastTimestamp = maybe(r, metav1.NewTime(microTime(r).Truncate(time.Second)))
	event.Count = maybe(r, r.Int32())
	if r.IntN(2) == 0 {
		event.EventTime, event.Series = metav1.MicroTime{}, nil
		event.ReportingController, event.ReportingInstance = maybe(r, word(r)), maybe(r, word(r))
		event.Action, event.Type = maybe(r, word(r)), maybe(r, word(r))
	}
	return event
}

func reference(r *rand.Rand) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion:      maybe(r, word(r)+"/v1"),
		Kind:            maybe(r, word(r)),
		Namespace:       maybe(r, word(r)),
		Name:            maybe(r, word(r)),
		UID:             types.UID(maybe(r, word(r))),
		ResourceVersion: maybe(r, "42"),
		FieldPath:       maybe(r, "spec.containers{"+word(r)+"}"),
	}
}

// maybe returns value or, in one of three cases, the zero value.
func maybe[T any](r *rand.Rand, value T) T {
	if r.IntN(3) == 0 {
		var none T
		return none
	}
	return value
}

func word(r *rand.Rand) string {
	return fmt.Sprintf("w%x", r.Uint32())
}

// microTime returns a time with the precision of the wire format.
func microTime(r *rand.Rand) metav1.MicroTime {
	return metav1.NewMicroTime(time.UnixMicro(1_700_000_000_000_000 + r.Int64N(1e15)))
}

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
		return append([]eventsv1.Event{}, list.Items...) // nil or empty if there are none
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
