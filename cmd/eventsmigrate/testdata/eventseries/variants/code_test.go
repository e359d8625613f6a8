package variants

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestInside(t *testing.T) {
	fake := record.NewFakeRecorder(1)
	(&Emitter{fake}).Emit(&corev1.Pod{})
	if e := <-fake.Events; e != "Warning NotThere a" {
		t.Error(e)
	}
	fake.Event(&corev1.Pod{}, "Normal", "NotThere", "b")
}
