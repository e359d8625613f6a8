// Package generated has a mock that a tool writes.
package generated

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

type controller struct{ recorder record.EventRecorder }

func (c *controller) run(pod *corev1.Pod) { c.recorder.Event(pod, "Normal", "Created", "a") }

func newMock() *controller { return &controller{&Mock{}} }

// This set has no generated code.
func other(recorder record.EventRecorder, pod *corev1.Pod) {
	recorder.Event(pod, "Normal", "Created", "a")
}
