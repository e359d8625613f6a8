// Package order has findings of each weight.
package order

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

func emit(r record.EventRecorder, pod *corev1.Pod) {
	r.Event(pod, "Normal", "not_camel", "a")
	r.Event(pod, "Normal", "NodeNotReady", "a")
}

type emitter struct{ record.EventRecorder }

// warn uses the message as the reason.
func (e *emitter) warn(object runtime.Object, message string) {
	e.Eventf(object, "Warning", message, "%s", message)
}

func start() record.EventRecorder {
	broadcaster := record.NewBroadcaster()
	return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "order"})
}
