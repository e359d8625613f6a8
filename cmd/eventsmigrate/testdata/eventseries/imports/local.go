package imports

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"example.com/testdata/eventseries/imports/events"
)

// The file has a package events.
func local(r record.EventRecorder, pod *corev1.Pod) {
	r.Event(pod, "Normal", events.Created, "a")
}
