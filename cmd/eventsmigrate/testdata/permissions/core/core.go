// Package core has a broadcaster that stays: all of its events go through the core group.
package core

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

type controller struct{ recorder record.EventRecorder }

// +kubebuilder:rbac:groups="",resources=events,verbs=create;update
func newController(client kubernetes.Interface, logf func(string, ...any)) *controller {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartLogging(logf)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return &controller{recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "core"})}
}

func (c *controller) sync(pod *corev1.Pod) { c.recorder.Event(pod, "Normal", "Created", "a") }
