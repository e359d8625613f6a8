package events

import (
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

// AnnotatedEventRecorder emits events with annotations. Every recorder of this
// package is one. It has the method set of the interface of that name which
// client-go has since v0.37.
type AnnotatedEventRecorder interface {
	// AnnotatedEventf is Eventf with annotations. They are put on the Event when
	// it is created, and those of later occurrences are merged into it with each
	// later write.
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
}

var (
	_ EventBroadcaster       = (*Broadcaster)(nil)
	_ EventRecorderLogger    = (*recorder)(nil)
	_ AnnotatedEventRecorder = (*recorder)(nil)
	_ EventSink              = (*EventSinkImpl)(nil)
)
