// Package coresink has moved, but writes through the core group.
package coresink

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
func newRecorder(client kubernetes.Interface) events.EventRecorder {
	broadcaster := events.NewBroadcaster(&compat.CoreSink{Interface: client.CoreV1()})
	var recorder events.EventRecorder = broadcaster.NewRecorder(scheme.Scheme, "coresink")
	recorder.Eventf(&corev1.Pod{}, nil, "Normal", "Created", "Create", "a")
	return recorder
}
