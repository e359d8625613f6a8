package tests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// The strings of a fake that shows objects differ.
func TestIncludeObject(t *testing.T) {
	fake := &record.FakeRecorder{Events: make(chan string, 1), IncludeObject: true}
	fake.Event(&corev1.Pod{}, "Normal", "Created", "a")
	t.Log(<-fake.Events)
}
