// Command given gives its manager a broadcaster. Only legacy recorders use it, so they stay.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{EventBroadcaster: broadcaster})
	if err != nil {
		os.Exit(1)
	}
	mgr.GetEventRecorderFor("given").Event(&corev1.Pod{}, "Normal", "Created", "a")
}
