package hostile

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)
import "github.com/eventseries/eventseries/events"

var _ events.EventRecorder

func header(client kubernetes.Interface) record.EventRecorder {
	broadcaster := record.NewBroadcaster()
	defer broadcaster.Shutdown()
	for broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")}); ; {
		return broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{
			Component: "hostile", // the component
		})
	}
}
