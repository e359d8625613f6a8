package events

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"
)

// These are client-go's own types, so that what is made here fits wherever
// client-go's is expected, and the other way round.
type (
	// EventBroadcaster is what client-go calls a broadcaster. *Broadcaster is one.
	EventBroadcaster = clientevents.EventBroadcaster
	// EventRecorder emits events.
	EventRecorder = clientevents.EventRecorder
	// EventRecorderLogger is an EventRecorder that can be given a logger.
	EventRecorderLogger = clientevents.EventRecorderLogger
	// EventSink is where Events are written. Its methods may be called
	// concurrently, and should return the kinds of errors that client-go's REST
	// client returns. Update is never called here. What Patch is given is a JSON
	// merge patch, which for its content is a strategic merge patch as well.
	EventSink = clientevents.EventSink
)

// EventLister is a sink that can read Events back, as *EventSinkImpl can. With
// one, a broadcaster that is started finds the series that earlier processes
// left. It is called as EventSink is.
type EventLister interface {
	// List returns the Events of a namespace, or of all if that is empty, that
	// opts selects, in pages as opts asks for.
	List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error)
}

// AnnotatedEventRecorder emits events with annotations. Every recorder of this
// package is one. It has the method set of the interface of that name which
// client-go has since v0.37.
type AnnotatedEventRecorder interface {
	// AnnotatedEventf is Eventf with annotations. They are put on the Event when
	// it is created, and those of later occurrences are merged into it with each
	// later write.
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
}

// Recorder is what every recorder of this package is. It can be used as the
// EventRecorder of controller-runtime's package recorder.
type Recorder interface {
	EventRecorderLogger
	AnnotatedEventRecorder
}

var (
	_ EventBroadcaster = (*Broadcaster)(nil)
	_ Recorder         = (*recorder)(nil)
	_ EventSink        = (*EventSinkImpl)(nil)
	_ EventLister      = (*EventSinkImpl)(nil)
)
