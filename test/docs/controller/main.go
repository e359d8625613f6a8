// Command controller checks the Secrets that ConfigMaps name. It is the first example of
// docs/manager.md.
package main

import (
	"context"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/eventseries/eventseries/controllerruntime"
)

// Reconciler checks the Secret that a ConfigMap names.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
}

// Reconcile looks again after 10 seconds while the Secret has no password.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var backup corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &backup); err != nil || backup.Data["secret"] == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var secret corev1.Secret
	if err := r.Get(ctx, client.ObjectKey{Namespace: req.Namespace, Name: backup.Data["secret"]}, &secret); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(secret.Data["password"]) == 0 {
		r.Recorder.Eventf(&backup, &secret, corev1.EventTypeWarning, "PasswordMissing", "CheckSecret", "secret %s has no password", secret.Name)
		return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
	}
	return ctrl.Result{}, nil
}

func main() {
	ctrl.SetLogger(klog.Background())
	mgr, err := controllerruntime.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}, nil)
	if err != nil {
		log.Fatal(err)
	}
	r := &Reconciler{mgr.GetClient(), mgr.GetEventRecorder("example.com/backup-controller")}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(r); err != nil {
		log.Fatal(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil { // writes the last counts before it returns
		log.Fatal(err)
	}
}
