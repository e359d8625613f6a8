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
}

// EventBroadcaster has recorders.
type EventBroadcaster interface {
	NewRecorder(source corev1.EventSource) EventRecorder
	StartStructuredLogging(verbosity int)
	Shutdown()
}

// NewBroadcaster returns a broadcaster.
func NewBroadcaster() EventBroadcaster { return nil }
