package calls

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// emit ignores two parameters, which have no name.
func (c *controller) emit(object, _ runtime.Object, annotations map[string]string, eventType, reason, _, format string, args ...any) {
	c.recorder.AnnotatedEventf(object, annotations, eventType, reason, format, args...)
}

// publish ignores parameters that have names, and one that no event has.
func publish(recorder record.EventRecorder, pod, related *corev1.Pod, eventType, reason string, action EventReason, _ ...int) {
	recorder.Eventf(pod, eventType, reason, "published")
	recorder.Event(pod, eventType, string(EventReason(reason)), "published")
}

// wrap ignores a parameter of a literal.
func wrap(recorder record.EventRecorder, _ string) func(object runtime.Object, reason, _ string) {
	return func(object runtime.Object, reason, _ string) {
		recorder.Event(object, "Normal", reason, "wrapped")
	}
}

// constant is no wrapper: callers choose no reason.
func constant(recorder record.EventRecorder, pod *corev1.Pod, _ string) {
	recorder.Event(pod, "Normal", "Started", "constant")
}

// queue keeps events until flush emits them.
type queue struct{ list []entry }

type entry struct{ kind, reason, text string }

func (q *queue) flush(recorder record.EventRecorder, pod *corev1.Pod) {
	for _, e := range q.list {
		recorder.Event(pod, e.kind, e.reason, e.text)
	}
}
