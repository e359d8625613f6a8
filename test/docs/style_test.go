package docs

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/eventseries/eventseries/events"
)

// recorded returns the Events that report records.
func recorded(t *testing.T, report func(recorder events.EventRecorder)) []eventsv1.Event {
	t.Helper()
	clientset := fake.NewClientset()
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	require.NoError(t, broadcaster.StartRecordingToSinkWithContext(t.Context()))
	report(broadcaster.NewRecorder(clientgoscheme.Scheme, "example.com/style"))
	broadcaster.Shutdown()
	return written(t, clientset)
}

func emitAll(recorder events.EventRecorder, regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	recorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

func TestFields(t *testing.T) {
	list := recorded(t, func(recorder events.EventRecorder) {
		emitAll(recorder, pod, node, "Normal", "Bound", "Schedule", "assigned to %s", node.Name)
	})
	require.Len(t, list, 1)
	assert.Equal(t, "assigned to node-7", list[0].Note)
}

func TestReasonsAreConstant(t *testing.T) {
	cj := cronJob
	bad := recorded(t, func(recorder events.EventRecorder) {
		for i := range 3 {
			job := &batchv1.Job{ObjectMeta: meta(fmt.Sprint("nightly-", i))}
			recorder.Eventf(cj, nil, "Normal", "Created-"+job.Name, "Created-"+job.Name, "")
		}
	})
	assert.Len(t, bad, 3)
	reasons := map[string]bool{}
	for _, event := range bad {
		reasons[event.Reason] = true
	}
	assert.Len(t, reasons, 3)
	good := recorded(t, func(recorder events.EventRecorder) {
		for range 3 {
			recorder.Eventf(cj, job, "Normal", "ScheduleReached", "CreateJob", "created job %s", job.Name)
		}
	})
	require.Len(t, good, 1)
	assert.EqualValues(t, 3, good[0].Series.Count)
}

func TestNotesAreReadable(t *testing.T) {
	taint := corev1.Taint{Key: "gpu"}
	list := recorded(t, func(recorder events.EventRecorder) {
		recorder.Eventf(pod, nil, "Normal", "Event", "Event", "scheduling pod to node-7 failed, reason=taint")
		recorder.Eventf(pod, node, "Warning", "UntoleratedTaint", "Schedule", "taint %s is not tolerated", taint.Key)
	})
	require.Len(t, list, 2)
}

func TestRelatedObject(t *testing.T) {
	rs := &appsv1.ReplicaSet{ObjectMeta: meta("web")}
	list := recorded(t, func(recorder events.EventRecorder) {
		recorder.Eventf(rs, nil, "Normal", "Scaling", "CreatePod", "created pod %s", pod.Name)
		recorder.Eventf(rs, pod, "Normal", "Scaling", "CreatePod", "created pod %s", pod.Name)
	})
	require.Len(t, list, 2)
}
