// Package record stands for that of client-go: go vet runs its tool on the source of all
// dependencies.
package record

import "k8s.io/apimachinery/pkg/runtime"

// EventRecorder emits events.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}
