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
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Call sites do not change. client-go writes the event of a program that ends at once
// only by chance.
func TestProgramsOnToolsRecord(t *testing.T) {
	clientset := fake.NewClientset()
	before.Run(clientset, cronJob, job)
	before.NewController(clientset).JobCreated(cronJob, job)

	clientset = fake.NewClientset()
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

func TestProgramWithStructuredEvents(t *testing.T) {
	config := apiserver.Config(t)
	cronJob, job := cronJob.DeepCopy(), job.DeepCopy()
	cronJob.Namespace = apiserver.Namespace(t)
	job.Namespace = cronJob.Namespace
	require.NoError(t, after.RunStructured(t.Context(), config, cronJob, job))
	clientset := apiserver.ClientsetFor(t, config)
	list := writtenIn(t, clientset, cronJob.Namespace)
	require.Len(t, list, 1)
	assert.Equal(t, "nightly-1", list[0].Related.Name)
	assert.Equal(t, "CreateJob", list[0].Action)
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
