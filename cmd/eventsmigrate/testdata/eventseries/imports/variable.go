package imports

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func variable(events []corev1.Event, pod *corev1.Pod, r record.EventRecorder) []record.EventRecorder {
	for range events {
		r.Event(pod, "Normal", "Created", "a")
	}
	return []record.EventRecorder{r}
}
