// Package verbs has actions in the map of the user.
package verbs

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func emit(r record.EventRecorder, pod *corev1.Pod) {
	r.Event(pod, "Normal", "Mapped", "from the map")
	r.Event(pod, "Normal", "SuccessfulDelete", "from the map, not from the verb")
}
