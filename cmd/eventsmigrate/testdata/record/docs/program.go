// Package before contains parts of programs with the recorders of client-go. The
// migration page quotes them.
package before

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Controller emits events.
type Controller struct {
	recorder record.EventRecorder
}

// JobCreated emits an event.
func (c *Controller) JobCreated(cronJob *batchv1.CronJob, job *batchv1.Job) {
	c.recorder.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", job.Name)
}

// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// NewController returns a controller whose broadcaster nobody can shut down.
func NewController(clientset kubernetes.Interface) *Controller {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "backup-controller"})
	return &Controller{recorder: recorder}
}

// Run emits an event and returns.
func Run(clientset kubernetes.Interface, cronJob *batchv1.CronJob, job *batchv1.Job) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "backup-controller"})

	recorder.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", job.Name)
}
