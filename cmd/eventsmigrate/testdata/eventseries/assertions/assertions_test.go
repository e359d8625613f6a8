// Package assertions compares the strings of fakes.
package assertions

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func emit(recorder record.EventRecorder) {
	recorder.Event(&corev1.Pod{}, "Normal", "Created", "a")
	recorder.AnnotatedEventf(&corev1.Pod{}, map[string]string{"b": "c"}, "Warning", "FailedCreate", "a %d", 1)
}

func TestEmit(t *testing.T) {
	fake := record.NewFakeRecorder(2)
	emit(fake)
	if got := <-fake.Events; got != "Normal Created a" {
		t.Error(got)
	}
	if got := <-fake.Events; got != "Warning FailedCreate a 1 map[b:c]" {
		t.Error(got)
	}
	t.Log("a 1 map[b:c]")
}
