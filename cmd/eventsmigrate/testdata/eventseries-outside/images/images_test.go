package images

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"example.com/testdata/eventseries/handwritten/fakes"
)

func TestPull(t *testing.T) {
	recorder := fakes.NewRecorder()
	puller := New(recorder)
	puller.Pull(&corev1.Pod{})
	if want := []string{"Pulled 100%", "Pulled 100%"}; !slices.Equal(want, recorder.Messages) {
		t.Error(recorder.Messages)
	}
}
