// Package backup is the controller in the README, built with controller-runtime. It
// loops because the disk for its backups is full.
package backup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/eventseries/eventseries/controllerruntime"
	"github.com/eventseries/eventseries/events"
)

// Reconciler backs up ConfigMaps.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
}

// Reconcile records that the disk is full, and retries.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var object corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.Recorder.Eventf(&object, nil, corev1.EventTypeWarning, "NoSpaceLeft", "BackUp", "no space left for %d keys", len(object.Data))
	return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
}

// Run runs the controller until ctx is done.
func Run(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	broadcaster, err := controllerruntime.NewBroadcaster(config, controllerruntime.BroadcasterOptions{Registerer: metrics.Registry})
	if err != nil {
		return err
	}
	mgr, err := controllerruntime.NewManager(config, options, broadcaster) // was ctrl.NewManager
	if err != nil {
		return err
	}
	reconciler := &Reconciler{mgr.GetClient(), mgr.GetEventRecorder("example.com/backup-controller")}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		return err
	}
	return mgr.Start(ctx) // writes the last counts before it returns
}
