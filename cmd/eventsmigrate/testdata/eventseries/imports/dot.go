package imports

import (
	corev1 "k8s.io/api/core/v1"
	. "k8s.io/client-go/tools/record"
)

type dotted struct{ EventRecorder }

func dot(r EventRecorder, pod *corev1.Pod) *FakeRecorder {
	dotted{r}.Event(pod, "Normal", "Created", "a")
	return NewFakeRecorder(1)
}
