// Command shapes gets its recorders in many ways.
package main

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

type app struct {
	manager.Manager
	broadcaster record.EventBroadcaster
}

var annotations = map[string]string{"a": "b"}

func (a *app) emit(pod *corev1.Pod) {
	a.GetEventRecorderFor("embedded").AnnotatedEventf(pod, annotations, "Normal", "PodCreated", "a")
	a.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "field"}).AnnotatedEventf(pod, annotations, "Normal", "PodCreated", "a")
	(a.broadcaster).NewRecorder(scheme.Scheme, corev1.EventSource{Component: "field"}).Event(pod, "Normal", "PodDeleted", "a")
	emit(a.GetEventRecorderFor("generic"), pod)
	defer a.recorder().Event(pod, "Normal", "PodStarted", "a")
}

func (a *app) recorder() record.EventRecorder { return a.Manager.GetEventRecorderFor("result") }

func emit[T client.Object](r record.EventRecorder, objects ...T) {
	for _, o := range objects {
		r.Eventf(o, "Normal", "PodUpdated", "a %s", o.GetName())
	}
}

func main() {
	create := func() (ctrl.Manager, error) { return ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{}) }
	mgr, err := create()
	if err != nil {
		os.Exit(1)
	}
	b := record.NewBroadcaster()
	defer b.Shutdown()
	(&app{mgr, b}).emit(&corev1.Pod{})
}
