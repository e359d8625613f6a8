package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// sink is a server that does next to nothing: it counts, may take its time, and
// answers with what it was sent. Make one with newSink. The legacy recorder has one
// in its own types, coreSink.
type sink struct {
	latency time.Duration // of each write, until hurry is called
	hurried atomic.Bool

	mu      sync.Mutex
	changed sync.Cond
	n       int64 // writes so far
}

func newSink() *sink {
	s := &sink{}
	s.changed.L = &s.mu
	return s
}

func (s *sink) wrote() {
	if s.latency > 0 && !s.hurried.Load() {
		time.Sleep(s.latency)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.changed.Broadcast()
}

// hurry ends the latency, so that what is left can be written soon.
func (s *sink) hurry() { s.hurried.Store(true) }

// writes returns how many writes there were.
func (s *sink) writes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// await returns when there were so many writes.
func (s *sink) await(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n < n {
		s.changed.Wait()
	}
}

func (s *sink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.wrote()
	return event, nil
}

func (s *sink) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s.wrote()
	return event, nil
}

func (s *sink) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.wrote()
	return event, nil
}

// coreSink is sink for the legacy recorder.
type coreSink struct{ *sink }

func (s coreSink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.wrote()
	return event, nil
}

func (s coreSink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	s.wrote()
	return event, nil
}

func (s coreSink) Update(event *corev1.Event) (*corev1.Event, error) {
	s.wrote()
	return event, nil
}
