// Package backup is a controller of controller-runtime as the README shows it: one
// that is in a loop, since the disk to which it backs up is full.
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

// Reconciler backs up ConfigMaps, or tries to.
type Reconciler struct {
	client.Client
	// Recorder is where it says what it does.
	Recorder events.EventRecorder
}

// Reconcile finds the disk full, and tries again.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var object corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.Recorder.Eventf(&object, nil, corev1.EventTypeWarning, "NoSpaceLeft", "BackUp", "no space left for %d keys", len(object.Data))
	return ctrl.Result{RequeueAfter: 10 * time.Millisecond}, nil
}

// Run runs the controller under a manager, which it starts, until ctx ends.
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
