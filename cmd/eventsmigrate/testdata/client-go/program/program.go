// Package program moves to the recorder of client-go.
package program

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

func run(client kubernetes.Interface, pod *corev1.Pod) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "program"})
	recorder.AnnotatedEventf(pod, map[string]string{"a": "b"}, "Normal", "Created", "a")
}

// Nothing adapts the recorder, so the set stays on client-go's package.
func leaderElection(recorder record.EventRecorder, pod *corev1.Pod) resourcelock.ResourceLockConfig {
	recorder.Event(pod, "Normal", "Created", "a")
	return resourcelock.ResourceLockConfig{EventRecorder: recorder}
}
