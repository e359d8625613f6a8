// Package record has the API of this project that the tests use.
package record

import "k8s.io/client-go/tools/record"

// The types are those of client-go.
type (
	EventBroadcaster = record.EventBroadcaster
	EventRecorder    = record.EventRecorder
	FakeRecorder     = record.FakeRecorder
)

// NewBroadcaster returns a broadcaster.
func NewBroadcaster() EventBroadcaster { return record.NewBroadcaster() }

// NewFakeRecorder returns a recorder for tests.
func NewFakeRecorder(size int) *FakeRecorder { return record.NewFakeRecorder(size) }

// NewEventRecorderAdapter returns a structured recorder.
func NewEventRecorderAdapter(r EventRecorder) *record.EventRecorderAdapter {
	return record.NewEventRecorderAdapter(r)
}
