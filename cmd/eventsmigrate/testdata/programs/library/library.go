// Package library gets managers and clusters from other modules, whose recorders can be those of
// client-go. Only the recorder of package inside is certainly one of this project.
package library

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

// Sink emits events with annotations.
type Sink struct {
	recorder record.EventRecorder
	mgr      ctrl.Manager
}

// New returns a Sink for a manager.
func New(mgr ctrl.Manager, remote cluster.Cluster) *Sink {
	remote.GetEventRecorderFor("remote").Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
	s := &Sink{mgr: mgr}
	s.set(recorderOf(mgr))
	return s
}

func recorderOf(mgr ctrl.Manager) record.EventRecorder { return mgr.GetEventRecorderFor("library") }

func (s *Sink) set(recorder record.EventRecorder) { s.recorder = recorder }

// Emit emits an event.
func (s *Sink) Emit(_ context.Context, pod *corev1.Pod) {
	s.recorder.AnnotatedEventf(pod, map[string]string{"a": "b"}, "Normal", "PodCreated", "a")
	s.mgr.GetEventRecorderFor("field").Event(pod, "Normal", "PodDeleted", "a")
}

// Record emits an event through the broadcaster of another module.
func Record(broadcaster record.EventBroadcaster) {
	broadcaster.NewRecorder(nil, corev1.EventSource{Component: "library"}).Event(&corev1.Pod{}, "Normal", "PodCreated", "a")
}

// Host is a manager with a name.
type Host interface {
	ctrl.Manager
	Name() string
}

// Start emits an event.
func Start(host Host) {
	host.GetEventRecorderFor(host.Name()).Event(&corev1.Pod{}, "Normal", "PodStarted", "a")
}
