// Package legacyrecorder implements the interface of the legacy recorder
// (k8s.io/client-go/tools/record) with a recorder of events.k8s.io/v1.
package legacyrecorder

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// DistinctNotes is how many messages get an Event of their own by default if the events differ in nothing
// else. Legacy callers put into the message what they would otherwise pass as the related object.
const DistinctNotes = 10

// Action returns the action of an event about regarding with the given reason. "" means the reason. A
// recorder calls it for every occurrence, possibly concurrently, so it should be fast.
type Action func(regarding runtime.Object, reason string) string

// Recorder is a [record.EventRecorderLogger] that emits its events to a recorder of
// events.k8s.io/v1. Create one with [New]. Its methods are safe for concurrent
// use.
type Recorder struct {
	target clientevents.EventRecorder
	action Action // nil: the reason
}

// New returns a Recorder that emits its events to the given recorder. If action
// is nil, the reason becomes the action.
func New(to clientevents.EventRecorder, action Action) *Recorder {
	return &Recorder{target: to, action: action}
}

// Event emits an event. The message is not a format.
func (r *Recorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.target.Eventf(object, nil, eventtype, reason, r.actionOf(object, reason), "%s", message)
}

// Eventf emits an event with a formatted message.
func (r *Recorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.target.Eventf(object, nil, eventtype, reason, r.actionOf(object, reason), messageFmt, args...)
}

// AnnotatedEventf emits an event with annotations. It omits them if the target does not
// support annotations.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	target, ok := r.target.(interface {
		AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
	})
	if !ok {
		r.Eventf(object, eventtype, reason, messageFmt, args...)
		return
	}
	target.AnnotatedEventf(object, nil, annotations, eventtype, reason, r.actionOf(object, reason), messageFmt, args...)
}

// WithLogger returns a recorder that logs problems with its events to logger. It returns
// the recorder itself if the target does not have this method.
func (r *Recorder) WithLogger(logger klog.Logger) record.EventRecorderLogger {
	target, ok := r.target.(clientevents.EventRecorderLogger)
	if !ok {
		return r
	}
	return &Recorder{target: target.WithLogger(logger), action: r.action}
}

// Target returns the recorder to which r emits.
func (r *Recorder) Target() clientevents.EventRecorder { return r.target }

func (r *Recorder) actionOf(object runtime.Object, reason string) (action string) {
	if r.action == nil {
		return reason
	}
	defer func() {
		// A bug in the callback must not crash the controller.
		if recover() != nil || action == "" {
			action = reason
		}
	}()
	return r.action(object, reason)
}
