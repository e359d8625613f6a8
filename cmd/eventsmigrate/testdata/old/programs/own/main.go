// Command own shuts down the broadcaster of its manager.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	broadcaster := record.NewBroadcaster()
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{EventBroadcaster: broadcaster})
	if err != nil {
		os.Exit(1)
	}
	mgr.GetEventRecorderFor("own").Event(&corev1.Pod{}, "Normal", "Created", "a")
	err = mgr.Start(context.Background())
	broadcaster.Shutdown()
	if err != nil {
		os.Exit(1)
	}
}
