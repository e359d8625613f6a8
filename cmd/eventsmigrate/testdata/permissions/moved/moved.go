// Package moved has a new recorder already.
package moved

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
func emit(client kubernetes.Interface, pod *corev1.Pod) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer broadcaster.Shutdown()
	broadcaster.NewRecorder(scheme.Scheme, "moved").Eventf(pod, nil, "Normal", "Created", "Create", "a")
}
