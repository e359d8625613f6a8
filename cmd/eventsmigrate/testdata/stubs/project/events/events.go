// Package events has the API of this project that the tests use.
package events

import "k8s.io/client-go/tools/events"

// The recorders are those of client-go.
type (
	EventRecorder = events.EventRecorder
	FakeRecorder  = events.FakeRecorder
)

// NewFakeRecorder returns a recorder for tests.
func NewFakeRecorder(size int) *FakeRecorder { return events.NewFakeRecorder(size) }
