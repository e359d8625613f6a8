// Package variants has tests in two packages.
package variants

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// Emitter emits events.
type Emitter struct{ Recorder record.EventRecorder }

// Emit emits an event.
func (e *Emitter) Emit(pod *corev1.Pod) { e.Recorder.Event(pod, "Warning", "NotThere", "a") }
