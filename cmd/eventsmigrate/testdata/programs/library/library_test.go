package library

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestEmit(t *testing.T) {
	fake := record.NewFakeRecorder(1)
	s := &Sink{recorder: fake}
	s.recorder.Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
	if e := <-fake.Events; e != "Normal PodCreated a" {
		t.Error(e)
	}
}
