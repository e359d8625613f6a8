package docs

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/events/eventstest"
)

// The objects in the pages.
var (
	cronJob = &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "CronJob", Namespace: "shop", Name: "nightly"}
	job     = &corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "shop", Name: "nightly-1"}
	volume  = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data-0"}
)

func TestReasonsAreConstant(t *testing.T) {
	recorder, cj := eventstest.NewRecorder(t), cronJob
	// bad: a new reason for every job
	recorder.Eventf(cj, nil, "Normal", "Created-"+job.Name, "Created-"+job.Name, "")
	// good
	recorder.Eventf(cj, job, "Normal", "ScheduleReached", "CreateJob", "created job %s", job.Name)
	recorder.Expect(t, eventstest.Want{Reason: "Created-nightly-1"}, eventstest.Want{Reason: "ScheduleReached"})
}
