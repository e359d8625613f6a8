package chaos

import (
	"context"
	"encoding/json"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
)

type listingSink interface {
	events.EventSink
	events.EventLister
}

// accountingSink reports what a recorder sends and what the server acknowledges.
// Together they bound what a killed process has written.
//
// It reports what the process has added to an Event: the sent count minus the count
// that the process found on the server.
type accountingSink struct {
	listingSink
	reports *reporter

	mu    sync.Mutex
	found map[string]*foundEvent // by name
}

type foundEvent struct {
	created metav1.MicroTime // eventTime, if the process has tried to create it
	touched bool             // whether the process has sent a count
	base    int64            // the count that the process found
}

func newAccountingSink(sink listingSink, reports *reporter) *accountingSink {
	return &accountingSink{listingSink: sink, reports: reports, found: make(map[string]*foundEvent)}
}

func (s *accountingSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	s.of(event).created = event.EventTime
	s.mu.Unlock()
	return s.write(event, int64(occurrences(event)), func() (*eventsv1.Event, error) { return s.listingSink.Create(ctx, event) })
}

func (s *accountingSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	var patch struct {
		Series *eventsv1.EventSeries `json:"series"`
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	do := func() (*eventsv1.Event, error) { return s.listingSink.Patch(ctx, event, data) }
	if patch.Series == nil {
		answer, err := do()
		if err == nil {
			s.look(answer)
		}
		return answer, err
	}
	s.mu.Lock()
	known := s.of(event)
	known.touched = true
	added := int64(patch.Series.Count) - known.base
	s.mu.Unlock()
	return s.write(event, added, do)
}

func (s *accountingSink) write(event *eventsv1.Event, added int64, do func() (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	_, key, ok := parseSubject(event.Regarding.Name)
	if !ok {
		key = -1
	}
	line := &addition{Key: key, Event: event.Name, Count: added}
	s.reports.write(report{Sent: line})
	answer, err := do()
	if err == nil {
		s.reports.write(report{Acked: line})
	}
	return answer, err
}

func (s *accountingSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	list, err := s.listingSink.List(ctx, namespace, opts)
	if err == nil {
		for i := range list.Items {
			s.look(&list.Items[i])
		}
	}
	return list, err
}

func (s *accountingSink) look(event *eventsv1.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.of(event)
	// The count of its own Event is no base, even if the process missed the answer.
	if !known.touched && !known.created.Equal(&event.EventTime) {
		known.base = max(known.base, int64(occurrences(event)))
	}
}

// of returns what is known about an Event. The caller holds the lock.
func (s *accountingSink) of(event *eventsv1.Event) *foundEvent {
	known := s.found[event.Name]
	if known == nil {
		known = &foundEvent{}
		s.found[event.Name] = known
	}
	return known
}
