// Command messages has a scheduler that tells about each victim of a Pod in a message of its
// own, and prints the Events that the server then has.
package main

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

func main() {
	s := &server{}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(s)
	preempt(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "scheduler"}))
	broadcaster.Shutdown()
	for _, e := range s.events {
		fmt.Println(e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

func preempt(recorder record.EventRecorder) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "urgent", UID: "1"}}
	for i := range 5 {
		victim := fmt.Sprintf("victim-%d", i)
		recorder.Eventf(pod, corev1.EventTypeNormal, "Preempted", "Preempted %s", victim)
	}
}

// server keeps the Events that are created.
type server struct {
	mu     sync.Mutex
	events []*corev1.Event
}

func (s *server) Create(e *corev1.Event) (*corev1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
	return e, nil
}

func (s *server) Update(e *corev1.Event) (*corev1.Event, error) { return e, nil }

func (s *server) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) { return e, nil }
