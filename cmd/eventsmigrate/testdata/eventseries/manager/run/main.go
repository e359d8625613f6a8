// Command run creates the manager of package manager.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/testdata/eventseries/manager"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	manager.Setup(mgr)
}
