// Package events has the API of client-go that the tests use.
package events

import "k8s.io/apimachinery/pkg/runtime"

// EventRecorder emits events.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// EventSinkImpl writes events.
type EventSinkImpl struct{ Interface any }

// EventBroadcaster has recorders.
type EventBroadcaster interface {
	NewRecorder(controller string) EventRecorder
	StartRecordingToSinkWithContext(any) error
	Shutdown()
}

// NewBroadcaster returns a broadcaster.
func NewBroadcaster(*EventSinkImpl) EventBroadcaster { return nil }

// NewEventBroadcasterAdapter returns a broadcaster for either group.
func NewEventBroadcasterAdapter(any) EventBroadcaster { return nil }

// FakeRecorder is a recorder for tests.
type FakeRecorder struct{ Events chan string }

// NewFakeRecorder returns a recorder for tests.
func NewFakeRecorder(size int) *FakeRecorder { return &FakeRecorder{make(chan string, size)} }

// Eventf emits an event.
func (*FakeRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
}
