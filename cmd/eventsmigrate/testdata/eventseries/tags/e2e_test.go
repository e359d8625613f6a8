//go:build e2e

package tags

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func TestEndToEnd(t *testing.T) {
	c := controller{recorder: record.NewFakeRecorder(1)}
	c.recorder.Event(&corev1.Pod{}, "Normal", "Created", "a")
}
