// Command options has managers of controller-runtime before v0.23.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

func main() {
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		LeaderElection: true,
	})
	if err != nil {
		os.Exit(1)
	}
	r := &reconciler{recorder: mgr.GetEventRecorderFor("options")}
	r.reconcile(&corev1.Pod{})
	if err := mgr.Start(context.Background()); err != nil {
		os.Exit(1)
	}
}

type reconciler struct{ recorder record.EventRecorder }

func (r *reconciler) reconcile(pod *corev1.Pod) {
	r.recorder.Event(pod, "Normal", "Created", "a")
}

// The caller runs the manager.
func newManager() (ctrl.Manager, error) {
	return ctrl.NewManager(&rest.Config{}, ctrl.Options{LeaderElection: true})
}

func empty() (ctrl.Manager, error) {
	options := ctrl.Options{}
	return ctrl.NewManager(&rest.Config{}, options)
}

// It has a broadcaster of the program already.
func given() (ctrl.Manager, error) {
	return ctrl.NewManager(&rest.Config{}, ctrl.Options{EventBroadcaster: record.NewBroadcaster()})
}

// These options are those of the caller.
func passed(options ctrl.Options) (ctrl.Manager, error) {
	return ctrl.NewManager(&rest.Config{}, options)
}

func remote() {
	c, err := cluster.New(&rest.Config{})
	if err == nil {
		c.GetEventRecorderFor("remote").Event(&corev1.Pod{}, "Normal", "Created", "a")
	}
}
