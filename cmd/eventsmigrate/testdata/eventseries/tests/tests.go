// Package tests has hand-written recorders.
package tests

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

type controller struct{ recorder record.EventRecorder }

func (c *controller) run(pod *corev1.Pod) {
	c.recorder.AnnotatedEventf(pod, nil, "Normal", "Created", "a %d", 1)
}

// fakeRecorder keeps messages.
type fakeRecorder struct{ messages []string }

func (f *fakeRecorder) Event(_ runtime.Object, _, _, message string) {
	f.messages = append(f.messages, message)
}

func (f *fakeRecorder) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {
	f.Event(object, eventtype, reason, fmt.Sprintf(messageFmt, args...))
}

func (f *fakeRecorder) AnnotatedEventf(object runtime.Object, _ map[string]string, eventtype, reason, messageFmt string, args ...any) {
	f.Eventf(object, eventtype, reason, messageFmt, args...)
}

var _ record.EventRecorder = &fakeRecorder{}

func newFake() *controller { return &controller{recorder: &fakeRecorder{}} }

// unrelated has a method with the same signature, but nobody uses it as a recorder.
type unrelated struct{}

func (unrelated) Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any) {}

func useUnrelated(pod *corev1.Pod) { unrelated{}.Eventf(pod, "Normal", "A", "b") }
