// Package controllers gets recorders from a manager.
package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Reconciler reconciles.
type Reconciler struct {
	Recorder record.EventRecorder
}

// Setup adds a reconciler.
func Setup(mgr ctrl.Manager) *Reconciler {
	return &Reconciler{Recorder: mgr.GetEventRecorderFor("reconciler")} //nolint:staticcheck // deprecated
}

// Reconcile emits events.
func (r *Reconciler) Reconcile(_ context.Context, pod *corev1.Pod) {
	r.Recorder.Event(pod, corev1.EventTypeNormal, "PodReconciled", "done")
	r.Recorder.Eventf(pod, corev1.EventTypeWarning, "FailedReconcile", "not done %d", 2)
}
