package emit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func names(b record.EventBroadcaster, driver string, r record.EventRecorder) {
	record.NewEventRecorderAdapter(r) // want `omits the related object and the action`
	b.NewRecorder(corev1.EventSource{Component: "external-resizer", Host: "node 1"})
	b.NewRecorder(corev1.EventSource{Component: "example.com/external-resizer"})
	b.NewRecorder(corev1.EventSource{Component: fmt.Sprintf("%s-resizer.%-5d", driver, 1)})
	b.NewRecorder(corev1.EventSource{Component: "external resizer"})                   // want `no reporting controller "external resizer"`
	b.NewRecorder(corev1.EventSource{Component: fmt.Sprintf("resizer of %s", driver)}) // want `no reporting controller "resizer of %s"`
	b.NewRecorder(corev1.EventSource{Component: "resizer " + driver})                  // want `no reporting controller "resizer "`
	b.NewRecorder(corev1.EventSource{Component: "-resizer"})                           // want `no reporting controller "-resizer"`
}

type (
	phase string
	free  string

	// queued is an event that is emitted later.
	queued struct{ Reason, Note string }

	// observed is a type of an API.
	observed struct{ Reason string }
)

func (*observed) DeepCopyInto(*observed) {}

const bound phase = "Bound"

// later emits what other functions have named.
func later(r record.EventRecorder, pod *corev1.Pod, list []queued, o *observed, p phase, f free) {
	for _, e := range list {
		r.Event(pod, "Normal", e.Reason, e.Note) // want `the reason is the field Reason of emit.queued: .* so check that it gets only constants`
	}
	r.Event(pod, "Normal", o.Reason, "note") // want `the reason is variable`
	r.Event(pod, "Normal", string(p), "note")
	r.Event(pod, "Normal", string(f), "note")               // want `the reason is variable`
	r.Event(pod, "Normal", string(phase(o.Reason)), "note") // want `the reason is variable`
	_ = bound
}
