package tests

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

func TestEmit(t *testing.T) {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: name}).Event(&corev1.Pod{}, "Normal", "Created", "a")
}
