// Command cluster emits events to a second cluster.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	remote, err := cluster.New(ctrl.GetConfigOrDie(), func(o *cluster.Options) { o.Scheme = mgr.GetScheme() })
	if err != nil {
		os.Exit(1)
	}
	if err := mgr.Add(remote); err != nil {
		os.Exit(1)
	}
	remote.GetEventRecorderFor("cluster").Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
}
