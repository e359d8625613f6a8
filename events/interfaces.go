package events

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
)

// These types are aliases of client-go's, so values of this package and of client-go
// are interchangeable.
type (
	// EventBroadcaster is client-go's broadcaster. [Broadcaster] implements it.
	EventBroadcaster = clientevents.EventBroadcaster
	// EventRecorder emits events.
	EventRecorder = clientevents.EventRecorder
	// EventRecorderLogger is an EventRecorder with a method that sets the logger.
	EventRecorderLogger = clientevents.EventRecorderLogger
	// EventSink writes Events. Its methods must be safe for concurrent use, and should
	// return when their context ends. They should return errors of the types that
	// client-go's REST client returns, and the Event that the server stored: without
	// its resourceVersion, the recorder cannot detect concurrent writes. If they return an error that comes
	// from neither a server nor a network, the recorder tries again later, and drops the
	// occurrences when they have waited for [Options].EventTTL. It does not call Update. It passes JSON merge
	// patches to Patch, which are valid strategic merge patches, too.
	EventSink = clientevents.EventSink
)

// EventLister is an [EventSink] that can list Events. With it, a broadcaster that
// starts finds the series of earlier processes. The rules of EventSink apply to it.
type EventLister interface {
	// List returns the Events that opts selects in a namespace, or in all namespaces
	// if namespace is empty. It returns pages if opts has a limit. If there is no selector
	// and more pages follow, RemainingItemCount must say how many Events they have, or
	// the recorder lists nothing.
	List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error)
}

// Recorder emits events, also with annotations. All recorders of this package implement it. It
// satisfies EventRecorder of controller-runtime's package recorder.
type Recorder interface {
	EventRecorderLogger
	AnnotatedEventRecorder
}

// AnnotatedEventRecorder emits events with annotations. It is client-go's interface, which has this
// name since v0.37.
type AnnotatedEventRecorder interface {
	// AnnotatedEventf is Eventf with annotations. The create request carries those of
	// the first occurrence; later writes merge those of later occurrences into them.
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
}

// FakeRecorder is client-go's recorder for tests. It sends events to a channel of
// strings, and blocks if the channel is full. For new tests, use the recorder of
// package eventstest: it does not block, and keeps all fields of an event.
type FakeRecorder = clientevents.FakeRecorder

// NewFakeRecorder returns a FakeRecorder with a channel of the given capacity.
func NewFakeRecorder(bufferSize int) *FakeRecorder {
	return clientevents.NewFakeRecorder(bufferSize)
}

// GetFieldSelector is client-go's function. It returns the field selector for the Events about an
// object, with the field names of the given version of the Events API. It does not select by empty
// arguments. It returns an error if the version is unknown.
func GetFieldSelector(eventsGroupVersion schema.GroupVersion, regardingGroupVersionKind schema.GroupVersionKind, regardingName string, regardingUID types.UID) (fields.Selector, error) {
	return clientevents.GetFieldSelector(eventsGroupVersion, regardingGroupVersionKind, regardingName, regardingUID)
}
