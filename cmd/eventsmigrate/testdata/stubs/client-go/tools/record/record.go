// Package record has the API of client-go that the tests use.
package record

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EventRecorder emits events.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any)
}

// EventBroadcaster has recorders.
type EventBroadcaster interface {
	NewRecorder(source corev1.EventSource) EventRecorder
	StartStructuredLogging(verbosity int)
	Shutdown()
}

// EventRecorderAdapter is a structured recorder.
type EventRecorderAdapter struct{ EventRecorder }

// NewEventRecorderAdapter returns a structured recorder.
func NewEventRecorderAdapter(r EventRecorder) *EventRecorderAdapter { return &EventRecorderAdapter{r} }

// NewBroadcaster returns a broadcaster.
func NewBroadcaster() EventBroadcaster { return nil }

// FakeRecorder is a recorder for tests.
type FakeRecorder struct{ Events chan string }

// NewFakeRecorder returns a recorder for tests.
func NewFakeRecorder(size int) *FakeRecorder { return &FakeRecorder{make(chan string, size)} }

// Event emits an event.
func (*FakeRecorder) Event(object runtime.Object, eventtype, reason, message string) {}

// Eventf emits an event.
func (*FakeRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
}

// AnnotatedEventf emits an event.
func (*FakeRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, messageFmt string, args ...any) {
}
