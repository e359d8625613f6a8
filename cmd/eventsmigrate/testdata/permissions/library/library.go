// Package library gets its recorder from a program that a run does not load.
package library

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
func emit(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Event(pod, "Normal", "Created", "a")
}
