// Package emit has recorders of any broadcaster.
package emit

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// Created emits an event.
func Created(recorder events.EventRecorder) {
	recorder.Eventf(&corev1.Pod{}, nil, "Normal", "PodCreated", "Create", "a")
}

// Deleted emits a legacy event.
func Deleted(recorder record.EventRecorder) {
	recorder.Event(&corev1.Pod{}, "Normal", "PodDeleted", "a")
}
