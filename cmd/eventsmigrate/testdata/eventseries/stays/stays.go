// Package stays contains what code outside of the module determines.
package stays

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func leaderElection(r record.EventRecorder, pod *corev1.Pod) resourcelock.ResourceLockConfig {
	r.Event(pod, "Normal", "Created", "a")
	return resourcelock.ResourceLockConfig{Identity: "a", EventRecorder: r}
}

// There is no clientset, so the broadcaster stays on compat/record.
func noClientset(events typedcorev1.EventsGetter, pod *corev1.Pod) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: events.Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "stays"})
	recorder.Event(pod, "Normal", "Created", "a")
}

// A method expression has the legacy signature.
func expression(r record.EventRecorder, pod *corev1.Pod) {
	emit := record.EventRecorder.Event
	emit(r, pod, "Normal", "Created", "a")
}

type annotator interface {
	record.EventRecorder
}
