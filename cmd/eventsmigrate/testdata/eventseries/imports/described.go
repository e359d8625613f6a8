package imports

import (
	// The comment describes the import below it.
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	// register the types
	_ "k8s.io/client-go/kubernetes/scheme"
)

func described(r record.EventRecorder, pod *corev1.Pod) {
	r.Event(pod, "Normal", "Created", "a")
}
