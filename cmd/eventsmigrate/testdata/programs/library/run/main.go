// Command run creates a manager.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/testdata/programs/library/inside"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	inside.Emit(mgr)
}
