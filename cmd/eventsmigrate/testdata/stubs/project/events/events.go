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

// Broadcaster is one of this project.
type Broadcaster struct{ events.EventBroadcaster }

// New returns a broadcaster with options.
func New(any, struct{}) (*Broadcaster, error) { return &Broadcaster{events.NewBroadcaster(nil)}, nil }
