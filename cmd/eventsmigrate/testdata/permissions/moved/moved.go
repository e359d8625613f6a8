// Package moved has a new recorder already.
package moved

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
func emit(recorder events.EventRecorder, pod *corev1.Pod) {
	recorder.Eventf(pod, nil, "Normal", "Created", "Create", "a")
}
