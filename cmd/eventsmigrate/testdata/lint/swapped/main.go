// Command swapped has changed its imports, but its manager has other recorders. // want package:`stock "example.com/testdata/lint/swapped/main.go:11"`
package main

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/testdata/lint/swapped/controllers"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}) // want `the import of compat/record in example.com/testdata/lint/swapped/controllers has no effect`
	if err == nil {
		controllers.Recorder(mgr)
	}
}
