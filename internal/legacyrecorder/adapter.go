package legacyrecorder

import (
	"k8s.io/apimachinery/pkg/runtime"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// Adapter is a recorder of events.k8s.io/v1 that emits its events to its target, with what that
// has room for.
type Adapter struct{ Target clientevents.EventRecorder }

// NewAdapter returns an Adapter for a legacy recorder. That of a [Recorder] emits to the same
// target.
func NewAdapter(to record.EventRecorder) *Adapter {
	if r, ok := to.(interface {
		Target() clientevents.EventRecorder
	}); ok {
		return &Adapter{r.Target()}
	}
	return &Adapter{legacyTarget{to}}
}

// Eventf emits an event.
func (a *Adapter) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	a.Target.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// AnnotatedEventf emits an event with annotations. It omits them if the target does not support
// them.
func (a *Adapter) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	if target, ok := a.Target.(interface {
		AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
	}); ok {
		target.AnnotatedEventf(regarding, related, annotations, eventtype, reason, action, note, args...)
		return
	}
	a.Target.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// WithLogger returns a recorder that logs problems with its events to logger. It returns the
// recorder itself if the target does not have this method.
func (a *Adapter) WithLogger(logger klog.Logger) clientevents.EventRecorderLogger {
	target, ok := a.Target.(clientevents.EventRecorderLogger)
	if !ok {
		return a
	}
	return &Adapter{target.WithLogger(logger)}
}

// legacyTarget is a legacy recorder, which has no place for the related object and the action.
type legacyTarget struct{ record.EventRecorder }

func (t legacyTarget) Eventf(regarding, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	t.EventRecorder.Eventf(regarding, eventtype, reason, note, args...)
}

func (t legacyTarget) AnnotatedEventf(regarding, _ runtime.Object, annotations map[string]string, eventtype, reason, _, note string, args ...any) {
	t.EventRecorder.AnnotatedEventf(regarding, annotations, eventtype, reason, note, args...)
}
