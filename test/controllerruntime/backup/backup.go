// Package backup is the controller in the README, built with controller-runtime. It
// loops because the disk for its backups is full.
package backup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/events/metrics"
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

// Run adds the controller to a manager and runs the manager until ctx is done.
func Run(ctx context.Context, mgr ctrl.Manager, clientset kubernetes.Interface) error {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	defer broadcaster.Shutdown() // when the manager has returned
	if err := mgr.Add(broadcaster); err != nil {
		return err
	}
	ctrlmetrics.Registry.MustRegister(metrics.NewCollector(broadcaster, metrics.Options{}))
	reconciler := &Reconciler{mgr.GetClient(), broadcaster.NewRecorder(mgr.GetScheme(), "example.com/backup-controller")}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconciler); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
