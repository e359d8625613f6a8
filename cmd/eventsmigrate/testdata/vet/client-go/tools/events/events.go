// Package events stands for that of client-go.
package events

import "k8s.io/apimachinery/pkg/runtime"

// EventRecorder emits events.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}
