// Package manager has the managers of controller-runtime before v0.23.
package manager

import (
	"context"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// Manager has recorders.
type Manager interface {
	GetEventRecorderFor(name string) record.EventRecorder
	Start(ctx context.Context) error
}

// Options of a manager.
type Options struct {
	LeaderElection   bool
	EventBroadcaster record.EventBroadcaster
}

// New creates a manager.
func New(*rest.Config, Options) (Manager, error) { return nil, nil }
