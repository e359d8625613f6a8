// Command foreign has managers that do not move, so its recorders do not either.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// newManager is what tests replace.
var newManager = ctrl.NewManager

func main() {
	mgr, err := newManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	emit(mgr.GetEventRecorderFor("foreign"))
	mgr, err = manager.New(arguments())
	if err != nil {
		os.Exit(1)
	}
	emit(mgr.GetEventRecorderFor("foreign"))
}

func arguments() (*rest.Config, ctrl.Options) { return ctrl.GetConfigOrDie(), ctrl.Options{} }

func emit(recorder record.EventRecorder) {
	recorder.Event(&corev1.Pod{}, "Normal", "Created", "a")
	recorder.Event(&corev1.Pod{}, "Normal", "Deleted", "a")
}
