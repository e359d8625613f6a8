package bench

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// sink counts writes and echoes them. coreSink adapts it to core/v1.
type sink struct {
	mu      sync.Mutex
	changed sync.Cond
	n       int64 // writes so far
}

func newSink() *sink {
	s := &sink{}
	s.changed.L = &s.mu
	return s
}

// write counts a write. It always succeeds.
func (s *sink) write() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.changed.Broadcast()
	return nil
}

// await waits for n writes in total.
func (s *sink) await(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.n < n {
		s.changed.Wait()
	}
}

func (s *sink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return event, s.write()
}

func (s *sink) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return event, s.write()
}

func (s *sink) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return event, s.write()
}

type coreSink struct{ *sink }

func (s coreSink) Create(event *corev1.Event) (*corev1.Event, error) { return event, s.write() }
func (s coreSink) Update(event *corev1.Event) (*corev1.Event, error) { return event, s.write() }
func (s coreSink) Patch(event *corev1.Event, _ []byte) (*corev1.Event, error) {
	return event, s.write()
}
