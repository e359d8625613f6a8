// Package manager has recorders of a manager of controller-runtime.
package manager

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Reconciler reconciles.
type Reconciler struct {
	client.Client
	Recorder record.EventRecorder
}

// +kubebuilder:rbac:groups="",resources=pods;events,verbs=get;list;watch;create;patch

// Reconcile emits events.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := r.Get(ctx, request.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, err
	}
	r.Recorder.Event(&pod, corev1.EventTypeNormal, "Reconciled", "done")
	return ctrl.Result{}, nil
}

// Setup adds the reconcilers.
func Setup(mgr ctrl.Manager) []*Reconciler {
	//nolint:staticcheck // the new recorder needs a role
	third := mgr.GetEventRecorderFor("third")
	return []*Reconciler{
		{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorderFor("first")},                //nolint:staticcheck // deprecated
		{Client: mgr.GetClient(), Recorder: mgr.GetEventRecorderFor("not a qualified name")}, // nolint:gosec,staticcheck
		{Client: mgr.GetClient(), Recorder: third},
	}
}

// A broadcaster that a manager receives stays on compat/record.
func options(broadcaster record.EventBroadcaster) manager.Options {
	return manager.Options{EventBroadcaster: broadcaster, LeaderElection: false} //nolint:staticcheck // leader election
}
