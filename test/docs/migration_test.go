package docs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
)

// after contains the code after the migration.
type after struct{}

func (after) legacyRecorder(clientset kubernetes.Interface, scheme *runtime.Scheme) (record.EventBroadcaster, record.EventRecorder) {
	broadcaster := compat.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: clientset.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "backup-controller"})
	return broadcaster, recorder
}

func (after) jobCreated(recorder events.EventRecorder, cronJob *batchv1.CronJob, job *batchv1.Job) {
	recorder.Eventf(cronJob, job, corev1.EventTypeNormal, "ScheduleReached", "CreateJob", "created job %s", job.Name)
}

func (after) bothKinds(clientset kubernetes.Interface) (*events.Broadcaster, *compat.Broadcaster) {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	legacy := compat.NewBroadcasterFor(broadcaster, compat.Options{})
	return broadcaster, legacy
}

// Call sites do not change.
func TestLegacyRecorderAfterMigration(t *testing.T) {
	clientset := fake.NewClientset()
	broadcaster, recorder := after{}.legacyRecorder(clientset, clientgoscheme.Scheme)
	before{}.jobCreated(recorder, cronJob, job)
	broadcaster.Shutdown()
	list := written(t, clientset)
	require.Len(t, list, 1)
	assert.Equal(t, "Created job nightly-1", list[0].Note)
	assert.Equal(t, "SuccessfulCreate", list[0].Action, "the reason is the action too")
}

func TestRecordersShareBroadcaster(t *testing.T) {
	clientset := fake.NewClientset()
	broadcaster, legacy := after{}.bothKinds(clientset)
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	before{}.jobCreated(legacy.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: "backup-controller"}), cronJob, job)
	after{}.jobCreated(broadcaster.NewRecorder(clientgoscheme.Scheme, "backup-controller"), cronJob, job)
	broadcaster.Shutdown()
	assert.Len(t, written(t, clientset), 2)
}
