// Package after contains the programs of package before, with the import changed.
package after

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/compat/record"
)

// Controller emits events.
type Controller struct {
	recorder record.EventRecorder
}

// JobCreated emits an event.
func (c *Controller) JobCreated(cronJob *batchv1.CronJob, job *batchv1.Job) {
	c.recorder.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", job.Name)
}

// NewController returns a controller, and a function that writes its last counts.
func NewController(clientset kubernetes.Interface) (c *Controller, shutdown func()) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "backup-controller"})
	return &Controller{recorder: recorder}, broadcaster.Shutdown
}

// Run emits an event and returns.
func Run(clientset kubernetes.Interface, cronJob *batchv1.CronJob, job *batchv1.Job) {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "backup-controller"})

	recorder.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", job.Name)
}
