// Package inside gets the manager of command run.
package inside

import (
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Emit emits an event.
func Emit(mgr ctrl.Manager) {
	mgr.GetEventRecorderFor("inside").Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
}
