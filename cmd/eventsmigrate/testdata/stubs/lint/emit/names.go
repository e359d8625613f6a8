package emit

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

func names(b record.EventBroadcaster, driver string, r record.EventRecorder) {
	record.NewEventRecorderAdapter(r) // want `omits the related object and the action`
	b.NewRecorder(corev1.EventSource{Component: "external-resizer", Host: "node 1"})
	b.NewRecorder(corev1.EventSource{Component: "example.com/external-resizer"})
	b.NewRecorder(corev1.EventSource{Component: fmt.Sprintf("%s-resizer.%-5d", driver, 1)})
	b.NewRecorder(corev1.EventSource{Component: "external resizer"})                   // want `no reporting controller "external resizer"`
	b.NewRecorder(corev1.EventSource{Component: fmt.Sprintf("resizer of %s", driver)}) // want `no reporting controller "resizer of %s"`
	b.NewRecorder(corev1.EventSource{Component: "resizer " + driver})                  // want `no reporting controller "resizer "`
	b.NewRecorder(corev1.EventSource{Component: "-resizer"})                           // want `no reporting controller "-resizer"`
}
