package main

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"

	"github.com/eventseries/eventseries/events"
)

// tally counts what the controllers emit, for comparison with what the server
// says in the end. It may be used concurrently; the zero value is empty.
type tally struct {
	mu     sync.Mutex
	counts map[subject]int
}

// recorder returns a recorder that counts what a controller emits and passes it
// on to next.
func (t *tally) recorder(controller string, next events.EventRecorder) events.EventRecorder {
	return &countingRecorder{tally: t, controller: controller, next: next}
}

// emitted returns the number of occurrences of each subject so far.
func (t *tally) emitted() map[subject]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.counts)
}

func (t *tally) add(s subject) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[subject]int)
	}
	t.counts[s]++
}

// sum returns the number of all occurrences.
func sum(emitted map[subject]int) int {
	n := 0
	for _, count := range emitted {
		n += count
	}
	return n
}

type countingRecorder struct {
	tally      *tally
	controller string
	next       events.EventRecorder
}

func (r *countingRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.next.Eventf(regarding, related, eventtype, reason, action, note, args...)
	// An object to which there is no reference gives a subject that no Event on
	// the server has, and so a verdict that says what is missing.
	regardingRef, _ := reference.GetReference(scheme.Scheme, regarding)
	s := subject{controller: r.controller, regarding: newObject(regardingRef), reason: reason}
	if related != nil {
		relatedRef, _ := reference.GetReference(scheme.Scheme, related)
		s.related = newObject(relatedRef)
	}
	r.tally.add(s)
}
