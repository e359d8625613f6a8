// Package closed keeps its recorders to itself, except for one.
package closed

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

type controller struct{ recorder record.EventRecorder }

func (c *controller) emit(pod *corev1.Pod) {
	c.recorder.Event(pod, "Normal", "Created", "a") // want `Event of the legacy recorder`
}

// Emit can be called by others.
func Emit(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Eventf(pod, "Normal", "Created", "a") // want `Eventf of the legacy recorder`
}
