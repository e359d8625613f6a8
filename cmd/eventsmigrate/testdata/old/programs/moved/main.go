// Command moved has one manager of controller-runtime before v0.23.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	mgr.GetEventRecorderFor("moved").Event(&corev1.Pod{}, "Normal", "Created", "a")
	if err := mgr.Start(context.Background()); err != nil {
		os.Exit(1)
	}
}
