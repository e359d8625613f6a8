// Command series passes a broadcaster to its manager, so the imports have an effect. // want package:`series true`
package main

import (
	"github.com/eventseries/eventseries/compat/record"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/testdata/lint/swapped/controllers"
)

func main() {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{EventBroadcaster: broadcaster})
	if err == nil {
		controllers.Recorder(mgr)
	}
}
