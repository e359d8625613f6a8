// Package reads has tests that read Events of the core group from a fake clientset.
package reads

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Run emits an event.
func Run(ctx context.Context, client kubernetes.Interface) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "reads"}).Event(&corev1.Pod{}, "Normal", "Created", "a")
}

// Events reads other Events: this is no test.
func Events(ctx context.Context, client kubernetes.Interface) *typedcorev1.EventInterface {
	events := client.CoreV1().Events("")
	return &events
}
