// Command structured has structured recorders, whose messages distinguish no events.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	mgr.GetEventRecorder("structured").Eventf(&corev1.Pod{}, nil, "Normal", "PodCreated", "Create", "a")
}
