package imports

import (
	// The comment describes the import below it.
	corev1 "k8s.io/api/core/v1"
	legacy "k8s.io/client-go/tools/record"
)

// A method expression stays.
func stays(r legacy.EventRecorder, pod *corev1.Pod) {
	emit := legacy.EventRecorder.Event
	emit(r, pod, "Normal", "Created", "a")
}
