package after

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// RunStructured is Run with a structured event.
func RunStructured(ctx context.Context, config *rest.Config, cronJob *batchv1.CronJob, job *batchv1.Job) error {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(compat.NewSink(clientset))
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, "backup-controller")

	recorder.Eventf(cronJob, job, corev1.EventTypeNormal, "ScheduleReached", "CreateJob", "created job %s", job.Name)
	return nil
}
