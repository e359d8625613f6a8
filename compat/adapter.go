package compat

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
)

// adapter is a recorder of events.k8s.io/v1 that emits its events to its target, with what that
// has room for.
type adapter struct{ target events.EventRecorder }

// Eventf emits an event.
func (a *adapter) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	a.target.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// AnnotatedEventf emits an event with annotations. It omits them if the target does not support
// them.
func (a *adapter) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	if target, ok := a.target.(events.AnnotatedEventRecorder); ok {
		target.AnnotatedEventf(regarding, related, annotations, eventtype, reason, action, note, args...)
		return
	}
	a.target.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// WithLogger returns a recorder that logs problems with its events to logger. It returns the
// recorder itself if the target does not have this method.
func (a *adapter) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	target, ok := a.target.(events.EventRecorderLogger)
	if !ok {
		return a
	}
	return &adapter{target.WithLogger(logger)}
}

// legacyTarget is a legacy recorder, which has no place for the related object and the action.
type legacyTarget struct{ record.EventRecorder }

func (t legacyTarget) Eventf(regarding, _ runtime.Object, eventtype, reason, _, note string, args ...any) {
	t.EventRecorder.Eventf(regarding, eventtype, reason, note, args...)
}

func (t legacyTarget) AnnotatedEventf(regarding, _ runtime.Object, annotations map[string]string, eventtype, reason, _, note string, args ...any) {
	t.EventRecorder.AnnotatedEventf(regarding, annotations, eventtype, reason, note, args...)
}
