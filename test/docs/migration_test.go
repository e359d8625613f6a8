package docs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/docs/after"
	"github.com/eventseries/eventseries/test/docs/before"
)

// The programs of package before are only compiled: their broadcasters never end.
var _ = before.Run

// Call sites do not change.
func TestProgramsOnToolsRecord(t *testing.T) {
	clientset := fake.NewClientset()
	after.Run(clientset, cronJob, job)
	controller, shutdown := after.NewController(clientset)
	controller.JobCreated(cronJob, job)
	shutdown()
	list := writtenByCore(t, clientset)
	require.Len(t, list, 1)
	assert.Equal(t, "Created job nightly-1", list[0].Message)
	assert.Equal(t, "SuccessfulCreate", list[0].Action, "the reason is the action too")
	assert.EqualValues(t, 2, list[0].Count)
	assert.Equal(t, "backup-controller", list[0].Source.Component)
}

func bothKinds(clientset kubernetes.Interface) (*events.Broadcaster, *compat.Broadcaster) {
	broadcaster := events.NewBroadcaster(compat.NewSink(clientset))
	legacy := compat.NewBroadcasterFor(broadcaster, compat.Options{})
	return broadcaster, legacy
}

func TestRecordersShareBroadcaster(t *testing.T) {
	clientset := fake.NewClientset()
	broadcaster, legacy := bothKinds(clientset)
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	legacy.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: "backup-controller"}).
		Eventf(cronJob, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %v", job.Name)
	broadcaster.NewRecorder(clientgoscheme.Scheme, "backup-controller").
		Eventf(cronJob, job, corev1.EventTypeNormal, "ScheduleReached", "CreateJob", "created job %s", job.Name)
	broadcaster.Shutdown()
	assert.Len(t, written(t, clientset), 2)
}
