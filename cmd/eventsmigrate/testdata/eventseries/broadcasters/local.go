// Package broadcasters contains broadcasters.
package broadcasters

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

func local(client kubernetes.Interface, pod *corev1.Pod) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartLogging(klog.Infof)
	broadcaster.StartLogging(klog.V(4).Infof)
	broadcaster.StartStructuredLogging(0)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "local"})
	recorder.Event(pod, "Normal", "Created", "a")
}

func returnsError(ctx context.Context, client kubernetes.Interface) error {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: typedcorev1.New(client.CoreV1().RESTClient()).Events("")})
	use(b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "local", Host: "a"}))
	return nil
}

func use(record.EventRecorder) {}
