// Package knative has the recorders of controllers that knative generates.
package knative

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"
)

func reconcile(ctx context.Context, pod *corev1.Pod) {
	recorder := controller.GetEventRecorder(ctx)
	recorder.Event(pod, "Normal", "Created", "a")
	controller.GetEventRecorder(ctx).Eventf(pod, "Normal", "Deleted", "%d", 1)
	emit(recorder, pod)
}

func emit(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Event(pod, "Normal", "Updated", "a")
}

// own has a recorder of its own, which moves.
func own(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Event(pod, "Normal", "PodUpdated", "a")
}
