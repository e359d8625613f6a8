package calls

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func four() (*corev1.Pod, string, string, string) { return nil, "Normal", "A", "b" }

// These stay: their signatures are the legacy ones.
func methodValue(recorder record.EventRecorder, pod *corev1.Pod) {
	emit := recorder.Eventf
	emit(pod, "Normal", "Created", "a %s", "b")
}

func hidden(recorder record.EventRecorder) any { return recorder.Eventf }

func results(recorder record.EventRecorder) { recorder.Event(four()) }
