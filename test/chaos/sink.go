package chaos

import (
	"context"
	"encoding/json"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
)

// listingSink is what an accountingSink is put in front of.
type listingSink interface {
	events.EventSink
	events.EventLister
}

// accountingSink reports what a recorder sends and what the server has
// acknowledged. So it is known to within the requests that were under way what a
// process that was killed has put on the server.
//
// What counts is what this process has added to an Event: the count that it sends,
// less the one that it found there.
type accountingSink struct {
	listingSink
	reports *reporter

	mu    sync.Mutex
	found map[string]*foundEvent // by name
}

// foundEvent is what a process knows of an Event.
type foundEvent struct {
	created metav1.MicroTime // when, if it may be its own: its eventTime
	touched bool             // it has sent a count
	base    int64            // the count that it found
}

func newAccountingSink(sink listingSink, reports *reporter) *accountingSink {
	return &accountingSink{listingSink: sink, reports: reports, found: make(map[string]*foundEvent)}
}

// Create implements events.EventSink.
func (s *accountingSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.of(event.Name).created = event.EventTime
	s.mu.Unlock()
	line := tellOf(event, int64(occurrences(event)))
	s.reports.write(report{Sent: line})
	answer, err := s.listingSink.Create(ctx, event)
	if err == nil {
		s.reports.write(report{Acked: line})
	}
	return answer, err
}

// Patch implements events.EventSink.
func (s *accountingSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	var patch struct {
		Series *eventsv1.EventSeries `json:"series"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	if patch.Series == nil {
		answer, err := s.listingSink.Patch(ctx, event, data)
		if err == nil {
			s.look(answer)
		}
		return answer, err
	}
	s.mu.Lock()
	known := s.of(event.Name)
	known.touched = true
	line := tellOf(event, int64(patch.Series.Count)-known.base)
	s.mu.Unlock()
	s.reports.write(report{Sent: line})
	answer, err := s.listingSink.Patch(ctx, event, data)
	if err == nil {
		s.reports.write(report{Acked: line})
	}
	return answer, err
}

// List implements events.EventLister.
func (s *accountingSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	list, err := s.listingSink.List(ctx, namespace, opts)
	if err == nil {
		for i := range list.Items {
			s.look(&list.Items[i])
		}
	}
	return list, err
}

// look takes in an Event that the server has shown.
func (s *accountingSink) look(event *eventsv1.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of(event.Name)
	// What it has made itself, without having learnt of it, is no base.
	if !known.touched && !known.created.Equal(&event.EventTime) {
		known.base = max(known.base, int64(occurrences(event)))
	}
}

// of returns what is known of an Event. The lock is held.
func (s *accountingSink) of(name string) *foundEvent {
	known := s.found[name]
	if known == nil {
		known = &foundEvent{}
		s.found[name] = known
	}
	return known
}

// tellOf says what a process has added to an Event.
func tellOf(event *eventsv1.Event, added int64) *addition {
	_, key, ok := parseSubject(event.Regarding.Name)
	if !ok {
		key = -1
	}
	return &addition{Key: key, Event: event.Name, Count: added}
}
