package compat

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
)

// NewRecorder returns a legacy recorder that emits its events to the given recorder,
// without a related object. The result also implements
// [k8s.io/client-go/tools/leaderelection/resourcelock.EventRecorder]. action has the
// same meaning as [Options].Action and may be nil. The given recorder can be any one of
// events.k8s.io/v1, such as that of a manager of controller-runtime.
//
// The given recorder decides how many messages get an Event of their own. Set
// DistinctNotes with [events.Broadcaster.NewRecorderWithOptions].
func NewRecorder(to events.EventRecorder, action func(regarding runtime.Object, reason string) string) record.EventRecorderLogger {
	return legacyrecorder.New(to, action)
}

// NewStructuredRecorder returns a recorder of events.k8s.io/v1 that emits its events to a legacy
// one, with its source. If that is one of this project, the events keep the related object and the
// action. Others have no place for these.
func NewStructuredRecorder(to record.EventRecorder) events.EventRecorderLogger {
	if r, ok := to.(interface{ Target() events.EventRecorder }); ok {
		return &adapter{r.Target()}
	}
	return &adapter{legacyTarget{to}}
}

// Annotated returns a recorder that emits its events to the given one. If that has no method for
// annotations, such as a recorder of a manager of controller-runtime before v0.25, the events have
// none.
func Annotated(to events.EventRecorder) events.AnnotatedEventRecorder {
	return &adapter{to}
}
