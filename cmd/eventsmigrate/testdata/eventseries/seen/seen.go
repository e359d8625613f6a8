// Package seen is used by a package that is not among the patterns. The two change
// together, unless others can use that package.
package seen

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// Emit emits an event.
func Emit(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Event(pod, "Normal", "Created", "a")
}

// Kept emits an event.
func Kept(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Event(pod, "Normal", "Created", "a")
}

func hidden(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Event(pod, "Normal", "Created", "a")
}
