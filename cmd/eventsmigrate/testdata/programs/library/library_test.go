package library

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestBroadcasters(*testing.T) {
	record.NewBroadcaster().NewRecorder(nil, corev1.EventSource{Component: "test"}).Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
	b := record.NewBroadcaster()
	defer b.Shutdown()
	recorderFor(b).Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
}

func recorderFor(b record.EventBroadcaster) record.EventRecorder {
	return b.NewRecorder(nil, corev1.EventSource{Component: "test"})
}

func TestEmit(t *testing.T) {
	fake := record.NewFakeRecorder(1)
	s := &Sink{recorder: fake}
	s.recorder.Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
	if e := <-fake.Events; e != "Normal PodCreated a" {
		t.Error(e)
	}
}
