package compat

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/legacyrecorder"
)

// Recorder is a legacy recorder with PastEventf, which client-go v0.19 removed from
// its interface. Create one with [NewRecorder].
type Recorder interface {
	record.EventRecorderLogger
	// PastEventf emits an event like Eventf that happened at timestamp: the eventTime of
	// an Event that begins with it. A later lastObservedTime is the time of a call. A
	// timestamp that is zero or in the future stands for the time of the call.
	PastEventf(object runtime.Object, timestamp metav1.Time, eventtype, reason, messageFmt string, args ...any)
}

var _ Recorder = (*legacyrecorder.Recorder)(nil)

// NewRecorder returns a legacy recorder that emits its events to the given recorder,
// without a related object. The result also implements
// [k8s.io/client-go/tools/leaderelection/resourcelock.EventRecorder]. action has the
// same meaning as [Options].Action and may be nil. The given recorder can be any one of
// events.k8s.io/v1, such as that of a manager of controller-runtime.
//
// The given recorder decides how many messages get an Event of their own. Set
// DistinctNotes with [events.Broadcaster.NewRecorderWithOptions].
func NewRecorder(to events.EventRecorder, action func(regarding runtime.Object, reason string) string) Recorder {
	return legacyrecorder.New(to, action)
}
