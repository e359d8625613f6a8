package compat

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/legacy"
)

// Recorder is a legacy recorder, with the method that the interface lost in
// client-go v0.19.
type Recorder interface {
	record.EventRecorderLogger
	// PastEventf emits an event as Eventf does. The time of an occurrence is that of
	// the call, so the given one is not taken.
	PastEventf(object runtime.Object, timestamp metav1.Time, eventtype, reason, messageFmt string, args ...any)
}

var _ Recorder = (*legacy.Recorder)(nil)

// NewRecorder returns a legacy recorder whose events go to a recorder of
// events.k8s.io/v1, without a related object. It is a resourcelock.EventRecorder as
// well. action is that of Options, and may be nil.
//
// The recorder decides whether messages tell series apart: make it with
// events.Broadcaster.NewRecorderWithOptions where they should.
func NewRecorder(to events.EventRecorderLogger, action func(regarding runtime.Object, reason string) string) Recorder {
	return legacy.NewRecorder(to, action)
}
