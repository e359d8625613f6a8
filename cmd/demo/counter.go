package main

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/eventseries/eventseries/events"
)

// counter counts the occurrences that the controllers emit, to compare them with the
// counts on the server. It is safe for concurrent use. The zero value is ready to use.
type counter struct {
	mu     sync.Mutex
	counts map[subject]int
}

// recorder returns a recorder that counts the occurrences of a controller and forwards
// them to next.
func (c *counter) recorder(controller string, next events.EventRecorder) events.EventRecorder {
	return &countingRecorder{counter: c, controller: controller, next: next}
}

// emitted returns the number of occurrences of each subject.
func (c *counter) emitted() map[subject]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

func (c *counter) add(s subject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[subject]int)
	}
	c.counts[s]++
}

// sum returns the total number of occurrences.
func sum(emitted map[subject]int) int {
	n := 0
	for _, count := range emitted {
		n += count
	}
	return n
}

type countingRecorder struct {
	counter    *counter
	controller string
	next       events.EventRecorder
}

func (r *countingRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.next.Eventf(regarding, related, eventtype, reason, action, note, args...)
	// Without a reference, no Event on the server has this subject, and the result
	// reports it as missing.
	regardingRef, _ := reference.GetReference(scheme.Scheme, regarding)
	s := subject{controller: r.controller, regarding: newObject(regardingRef), reason: reason}
	if related != nil {
		relatedRef, _ := reference.GetReference(scheme.Scheme, related)
		s.related = newObject(relatedRef)
	}
	r.counter.add(s)
}

// subject is what an Event is about. The demo expects one Event per subject.
type subject struct {
	controller string
	regarding  object
	related    object // zero if there is none
	reason     string
}

// object is an object that an Event references.
type object struct{ kind, namespace, name string }

func (o object) String() string { return o.kind + "/" + o.name }

func newSubject(controller string, regarding, related *corev1.ObjectReference, reason string) subject {
	return subject{
		controller: controller,
		regarding:  newObject(regarding),
		related:    newObject(related),
		reason:     reason,
	}
}

// subjectOf returns the subject of an Event.
func subjectOf(event *eventsv1.Event) subject {
	return newSubject(event.ReportingController, &event.Regarding, event.Related, event.Reason)
}

func newObject(ref *corev1.ObjectReference) object {
	if ref == nil {
		return object{}
	}
	return object{kind: ref.Kind, namespace: ref.Namespace, name: ref.Name}
}

// String returns the subject without its controller and namespaces.
func (s subject) String() string {
	text := s.regarding.String() + " " + s.reason
	if s.related != (object{}) {
		text += " (" + s.related.String() + ")"
	}
	return text
}
