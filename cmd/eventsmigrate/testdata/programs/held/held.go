// Package held passes the type of client-go's sink to code that it does not own.
package held

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"example.com/testdata/programs/held/generated"
)

// Emit emits an event.
func Emit(client kubernetes.Interface) {
	sink := &events.EventSinkImpl{Interface: client.EventsV1()}
	generated.Keep(sink)
	broadcaster := events.NewBroadcaster(sink)
	defer broadcaster.Shutdown()
	broadcaster.NewRecorder(scheme.Scheme, "held").Eventf(&corev1.Pod{}, nil, "Normal", "PodCreated", "Create", "a")
}
