// Package legacy gives callers of the legacy recorder (k8s.io/client-go/tools/record)
// one of events.k8s.io/v1.
package legacy

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// DistinctNotes is how many messages of the same tuple are told apart where nobody
// says: legacy callers put what differs into the message.
const DistinctNotes = 10

// Action says what was done or tried, when an event is about regarding and has
// that reason. What is empty stands for the reason. It is called by every
// occurrence, maybe concurrently, so it should be quick.
type Action func(regarding runtime.Object, reason string) string

// annotated is what the recorders of this project have beside client-go's oldest
// interface.
type annotated interface {
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
}

// Recorder is a record.EventRecorderLogger whose events go to a recorder of
// events.k8s.io/v1. Its methods may be called concurrently.
type Recorder struct {
	to     clientevents.EventRecorderLogger
	action Action // nil: the reason
}

var _ record.EventRecorderLogger = (*Recorder)(nil)

// NewRecorder returns a Recorder. If action is nil, the reason is the action.
func NewRecorder(to clientevents.EventRecorderLogger, action Action) *Recorder {
	return &Recorder{to: to, action: action}
}

// Event emits an event. The message is text and not a format.
func (r *Recorder) Event(object runtime.Object, eventtype, reason, message string) {
	r.to.Eventf(object, nil, eventtype, reason, r.actionOf(object, reason), "%s", message)
}

// Eventf emits an event with a message that is formatted.
func (r *Recorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	r.to.Eventf(object, nil, eventtype, reason, r.actionOf(object, reason), messageFmt, args...)
}

// AnnotatedEventf emits an event with annotations. If the recorder that it goes
// to takes none, they are left out.
func (r *Recorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
	if to, ok := r.to.(annotated); ok {
		to.AnnotatedEventf(object, nil, annotations, eventtype, reason, r.actionOf(object, reason), messageFmt, args...)
		return
	}
	r.Eventf(object, eventtype, reason, messageFmt, args...)
}

// PastEventf emits an event as Eventf does. It was taken out of the interface in
// client-go v0.19; code that is older than that still calls it. The time of an
// occurrence is that of the call, so the given one is not taken.
func (r *Recorder) PastEventf(object runtime.Object, _ metav1.Time, eventtype, reason, messageFmt string, args ...any) {
	r.Eventf(object, eventtype, reason, messageFmt, args...)
}

// WithLogger returns a recorder that logs to logger what is wrong with the
// events that it emits.
func (r *Recorder) WithLogger(logger klog.Logger) record.EventRecorderLogger {
	return &Recorder{to: r.to.WithLogger(logger), action: r.action}
}

func (r *Recorder) actionOf(object runtime.Object, reason string) (action string) {
	if r.action == nil {
		return reason
	}
	defer func() {
		// An event is not worth the life of its controller.
		if recover() != nil || action == "" {
			action = reason
		}
	}()
	return r.action(object, reason)
}
