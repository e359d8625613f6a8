// Package cluster has the clusters of controller-runtime before v0.23.
package cluster

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// Cluster has recorders.
type Cluster interface {
	GetEventRecorderFor(name string) record.EventRecorder
}

// Options of a cluster.
type Options struct {
	EventBroadcaster record.EventBroadcaster
}

// Option changes options.
type Option func(*Options)

// New creates a cluster.
func New(*rest.Config, ...Option) (Cluster, error) { return nil, nil }
