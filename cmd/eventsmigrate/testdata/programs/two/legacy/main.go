// Command legacy has legacy recorders, and another program of the module structured ones.
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
	mgr.GetEventRecorderFor("legacy").Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
}
