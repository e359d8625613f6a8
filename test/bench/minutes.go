package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// minutes is a server that counts writes by the minute. If it keeps Events, it lists
// those too. Make one with newMinutes.
type minutes struct {
	mu     sync.Mutex
	began  time.Time
	writes []int
	keep   bool
	events map[string]*eventsv1.Event // by name: those that were kept
	names  []string                   // of events, sorted; nil if that is to be done
}

func newMinutes(keep bool) *minutes {
	return &minutes{began: time.Now(), keep: keep, events: make(map[string]*eventsv1.Event)}
}

// restart begins to count anew. It lists what was kept, and keeps no more: that would
// cost more than what is measured.
func (m *minutes) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.writes, m.keep = time.Now(), nil, false
}

// all returns the writes of each minute of a time.
func (m *minutes) all(d time.Duration) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]int, int(d/time.Minute))
	copy(all, m.writes)
	return all
}

func (m *minutes) count() {
	minute := int(time.Since(m.began) / time.Minute)
	for len(m.writes) <= minute {
		m.writes = append(m.writes, 0)
	}
	m.writes[minute]++
}

func (m *minutes) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	if m.keep {
		m.events[event.Name], m.names = event, nil
	}
	return event, nil
}

func (m *minutes) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	if !m.keep {
		return event, nil
	}
	stored, ok := m.events[event.Name]
	if !ok {
		return nil, fmt.Errorf("bench: no event %q", event.Name)
	}
	stored = stored.DeepCopy()
	// What a merge patch sets in maps and structs, decoding sets as well.
	if err := json.Unmarshal(data, stored); err != nil {
		return nil, err
	}
	m.events[event.Name] = stored
	return stored, nil
}

func (m *minutes) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return nil, fmt.Errorf("bench: nobody should update")
}

// List returns the Events that are kept, page by page.
func (m *minutes) List(_ context.Context, _ string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		for name := range m.events {
			m.names = append(m.names, name)
		}
		slices.Sort(m.names)
	}
	from, _ := strconv.Atoi(opts.Continue)
	to := min(from+int(opts.Limit), len(m.names))
	page := &eventsv1.EventList{}
	for _, name := range m.names[from:to] {
		page.Items = append(page.Items, *m.events[name])
	}
	if to < len(m.names) {
		page.Continue = strconv.Itoa(to)
	}
	return page, nil
}

// severable is minutes as one process sees it, until it is cut off.
type severable struct {
	*minutes
	severed atomic.Bool
}

// Create says that it has created event.
func (s *severable) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if s.severed.Load() {
		return event, nil
	}
	return s.minutes.Create(ctx, event)
}

// Patch says that it has patched event.
func (s *severable) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if s.severed.Load() {
		return event, nil
	}
	return s.minutes.Patch(ctx, event, data)
}
