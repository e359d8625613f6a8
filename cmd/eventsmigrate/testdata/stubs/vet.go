// Package vet emits events with a legacy recorder and with a new one.
package vet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

func emit(old record.EventRecorder, r events.EventRecorder, node *corev1.Node, pod *corev1.Pod) {
	old.Event(pod, "Normal", "Created", "done")
	r.Eventf(node, pod, "Normal", "Created", "Create", "done")
}
