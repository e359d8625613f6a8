package bench

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/events"
)

// sink counts writes and echoes them. coreSink adapts it to core/v1.
type sink struct {
	latency atomic.Int64 // of each write, in nanoseconds

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
	if latency := s.latency.Load(); latency > 0 {
		time.Sleep(time.Duration(latency))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	s.changed.Broadcast()
	return nil
}

func (s *sink) writes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
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

// minuteSink counts writes per minute. It optionally stores Events, and lists the
// stored ones. Updates panic.
type minuteSink struct {
	events.EventSink
	mu     sync.Mutex
	began  time.Time
	writes []int
	store  bool
	stored map[string]*eventsv1.Event // by name
	names  []string                   // of stored, sorted on the first list
}

func newMinuteSink(store bool) *minuteSink {
	return &minuteSink{began: time.Now(), store: store, stored: make(map[string]*eventsv1.Event)}
}

// snapshot returns a new sink that lists the Events of m.
func (m *minuteSink) snapshot() *minuteSink {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &minuteSink{began: time.Now(), stored: maps.Clone(m.stored)}
}

// perMinute returns the writes in each minute of the given duration.
func (m *minuteSink) perMinute(d time.Duration) []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]int, int(d/time.Minute))
	copy(all, m.writes)
	return all
}

func (m *minuteSink) count() {
	minute := int(time.Since(m.began) / time.Minute)
	for len(m.writes) <= minute {
		m.writes = append(m.writes, 0)
	}
	m.writes[minute]++
}

func (m *minuteSink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	if m.store {
		m.stored[event.Name] = event
	}
	return event, nil
}

func (m *minuteSink) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count()
	if !m.store {
		return event, nil
	}
	stored := m.stored[event.Name].DeepCopy()
	// Decoding sets the same fields of structs and maps as a merge patch.
	must(json.Unmarshal(data, stored)) // not nil, since all Events are stored
	m.stored[event.Name] = stored
	return stored, nil
}

// List returns a page of the stored Events.
func (m *minuteSink) List(_ context.Context, _ string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names == nil {
		m.names = slices.Sorted(maps.Keys(m.stored))
	}
	from, _ := strconv.Atoi(opts.Continue)
	to := min(from+int(opts.Limit), len(m.names))
	page := &eventsv1.EventList{}
	for _, name := range m.names[from:to] {
		page.Items = append(page.Items, *m.stored[name])
	}
	if to < len(m.names) {
		page.Continue = strconv.Itoa(to)
	}
	return page, nil
}
