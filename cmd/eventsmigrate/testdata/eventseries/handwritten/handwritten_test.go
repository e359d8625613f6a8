package handwritten

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"example.com/testdata/eventseries/handwritten/fakes"
)

func TestSync(t *testing.T) {
	recorder := fakes.NewRecorder()
	(&controller{recorder: recorder}).sync(&corev1.Pod{})
	if len(recorder.Messages) != 1 || recorder.Messages[0] != "Created a" {
		t.Error(recorder.Messages)
	}
}
