package docs

import (
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
)

// before contains code with the recorders of client-go.
type before struct{}

func (before) legacyRecorder(clientset kubernetes.Interface, scheme *runtime.Scheme) (record.EventBroadcaster, record.EventRecorder) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "backup-controller"})
	return broadcaster, recorder
}

func (before) jobCreated(recorder record.EventRecorder, cronJob *batchv1.CronJob, job *batchv1.Job) {
	recorder.Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", job.Name)
}

func TestLegacyRecorderBeforeMigration(t *testing.T) {
	broadcaster, recorder := before{}.legacyRecorder(fake.NewClientset(), clientgoscheme.Scheme)
	before{}.jobCreated(recorder, cronJob, job)
	broadcaster.Shutdown()
}

func TestFakeRecorder(t *testing.T) {
	recorder := events.NewFakeRecorder(100)
	reconciler := &Reconciler{Recorder: recorder}
	reconcile(t, reconciler)
	require.Contains(t, <-recorder.Events, "Warning QuotaExceeded")
}
