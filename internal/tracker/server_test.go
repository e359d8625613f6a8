package tracker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// ids is a set of occurrences, a bit for each. It never changes: methods return new sets.
type ids []uint64

func (s ids) len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// first returns the first n.
func (s ids) first(n int) ids {
	all := slices.Clone(s)
	for i := range all {
		for ; all[i] != 0 && all[:i+1].len() > n; all[i] &= 1<<(bits.Len64(all[i])-1) - 1 {
		}
	}
	return all
}

func (s ids) combine(o ids, with func(a, b uint64) uint64) ids {
	sum := make(ids, max(len(s), len(o)))
	for i := range sum {
		var a, b uint64
		if i < len(s) {
			a = s[i]
		}
		if i < len(o) {
			b = o[i]
		}
		sum[i] = with(a, b)
	}
	return sum
}

func (s ids) or(o ids) ids  { return s.combine(o, func(a, b uint64) uint64 { return a | b }) }
func (s ids) not(o ids) ids { return s.combine(o, func(a, b uint64) uint64 { return a &^ b }) }
func (s ids) and(o ids) ids { return s.combine(o, func(a, b uint64) uint64 { return a & b }) }

// server is an API server that complains about requests that no recorder should send, and
// knows which occurrences are part of the count of each Event.
type server struct {
	t      *testing.T
	api    fakeapi.Server
	events map[string]*remoteEvent // those that exist, by name
	past   map[string]ids          // of Events that were deleted, by key
	keys   map[series.Key]string   // the short names of keys
	now    time.Duration

	// versionless: the sink returns no resourceVersion, like one that is no API server.
	versionless bool
	mark        time.Duration // of another process, which meddles
	worlds      []*world      // that write to it
	books
}

// books contain what has become of all occurrences.
type books struct {
	n       int // how many there are; each has a number
	dropped ids // said to be lost
	doubted ids // of these, the ones that an Event may contain, because a response was lost
	killed  ids // only a process that was killed knew them
	doubled int // counted twice

	blind map[string]bool // tuples with a unique name, which no other process finds
}

// fresh returns n new occurrences.
func (b *books) fresh(n int) ids {
	fresh := make(ids, (b.n+n)/64+1)
	for ; n > 0; n-- {
		fresh[b.n/64] |= 1 << (b.n % 64)
		b.n++
	}
	return fresh
}

// remoteEvent is an Event, and what the books know of it.
type remoteEvent struct {
	event    *eventsv1.Event
	key      string      // short name of the key whose name it has
	stranger strangeness // empty if it has that key; otherwise nobody may change it
	changed  time.Duration
	ids      ids
	isOdd    bool   // somebody has changed its key: while it has no series, no other process knows it
	writer   *Entry // that has written last; nil if it was somebody else
}

func newServer(t *testing.T) *server {
	s := &server{t: t, events: map[string]*remoteEvent{}, past: map[string]ids{}, keys: map[series.Key]string{}}
	s.blind = map[string]bool{}
	s.api.OnChange = func(_ string, before, after *eventsv1.Event) {
		switch {
		case before == nil:
			s.events[after.Name] = &remoteEvent{event: after, changed: s.now}
		case after == nil:
			ev := s.events[before.Name]
			s.past[ev.key] = s.past[ev.key].or(ev.ids)
			delete(s.events, before.Name)
		default:
			s.events[after.Name].event, s.events[after.Name].changed = after, s.now
		}
	}
	return s
}

func (ev *remoteEvent) count() int {
	switch {
	case ev.stranger != "":
		return 0
	case ev.event.Series == nil:
		return 1
	default:
		return int(ev.event.Series.Count)
	}
}

// do handles the request for a write of e, which contains the occurrences that f has.
func (s *server) do(f *flight) (r Response, ev *remoteEvent) {
	s.t.Helper()
	ctx, w := context.Background(), f.Write
	if w.Creates() {
		event, err := s.api.Create(ctx, w.Series.Event())
		ev = s.events[w.Series.Name]
		if err == nil {
			ev.key, ev.ids, ev.writer = f.key, f.ids, f.entry
			s.checkMetadata(w, event)
		}
		return s.result(event, err), ev
	}
	patch, err := w.Patch()
	require.NoError(s.t, err, "%s cannot be sent", w.Kind)
	if w.Kind != Look && !s.versionless && !bytes.Contains(patch, []byte(`"resourceVersion":"`+w.Series.Version+`"`)) {
		s.t.Errorf("%s of %s names no version: %s", w.Kind, f.key, patch)
	}
	var before *eventsv1.Event
	if ev = s.events[w.Series.Name]; ev != nil {
		before = ev.event
	}
	event, err := s.api.Patch(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: w.Series.Namespace, Name: w.Series.Name}}, patch)
	// Without versions, nothing can tell that the Event contains what was dropped.
	isDoubted := s.versionless && ev != nil && ev.ids.not(f.ids).and(s.doubted).len() > 0
	if err == nil && !isDoubted {
		s.compare(w, before, ev)
	}
	if err == nil && w.Kind != Look {
		if undone := ev.ids.not(f.ids).len(); undone > 0 && !isDoubted {
			s.t.Errorf("%s of %s takes back %d occurrences", w.Kind, f.key, undone)
		}
		ev.ids, ev.writer = f.ids, f.entry
		if !s.versionless && event.ResourceVersion == before.ResourceVersion {
			s.t.Errorf("%s of %s changes nothing: %s", w.Kind, f.key, patch)
		}
		s.checkMetadata(w, event)
		if stated := bytes.Contains(patch, []byte(series.LabelState)); s.versionless && !stated ||
			!s.versionless && stated && before.Labels[series.LabelState] == event.Labels[series.LabelState] {
			s.t.Errorf("%s of %s contains the state: %t", w.Kind, f.key, stated)
		}
	}
	return s.result(event, err), ev
}

func (s *server) result(event *eventsv1.Event, err error) (r Response) {
	s.t.Helper()
	r.Event = event
	switch {
	case err == nil && s.versionless:
		event.ResourceVersion = ""
	case err == nil:
	case apierrors.IsAlreadyExists(err):
		r.Outcome = schedule.Taken
	case apierrors.IsNotFound(err):
		r.Outcome = schedule.Gone
	case apierrors.IsConflict(err):
		r.Outcome = schedule.Changed
	default:
		s.t.Errorf("invalid request: %v", err)
	}
	return r
}

// checkMetadata complains if an Event does not have the state, the heartbeat, the window, and
// the latest note that w was to write.
func (s *server) checkMetadata(w *Write, event *eventsv1.Event) {
	s.t.Helper()
	found := read(event)
	if found.State != w.Series.State || w.Series.Heartbeat > 0 && found.Heartbeat != w.Series.Heartbeat || found.QuietWindow() != w.Series.QuietWindow() {
		s.t.Errorf("%s of %s leaves it %s with heartbeat %s and window %s", w.Kind, w.Series.Name, found.State, found.Heartbeat, found.Window)
	}
	if latest := cmp.Or(found.LastNote, found.Note); w.Series.Count > 1 && w.Series.LastNote != "" && latest != w.Series.LastNote {
		s.t.Errorf("%s of %s leaves it with the latest note %q, and not %q", w.Kind, w.Series.Name, latest, w.Series.LastNote)
	}
}

// compare complains about a patch that no recorder should send.
func (s *server) compare(w *Write, before *eventsv1.Event, ev *remoteEvent) {
	s.t.Helper()
	after := ev.event
	if b, a := before.Series, after.Series; b != nil && (a == nil || a.Count < b.Count || a.LastObservedTime.Before(&b.LastObservedTime)) {
		s.t.Errorf("%s of %s turns series %+v into %+v", w.Kind, w.Series.Name, b, a)
	}
	if ev.stranger != "" && after.ResourceVersion != before.ResourceVersion {
		s.t.Errorf("%s has changed the Event of a stranger", w.Kind)
	}
	// No key is used for both.
	changes := !maps.Equal(labels.Merge(before.Annotations, before.Labels), labels.Merge(after.Annotations, after.Labels)) ||
		toJSON(s.t, before.Series) != toJSON(s.t, after.Series)
	if w.Kind == Look && changes {
		s.t.Errorf("a look changes %s", w.Series.Name)
	}
}

// meddle makes another process continue an Event.
func (s *server) meddle(ev *remoteEvent, n int, state series.State, at time.Time) {
	found := read(ev.event)
	found.Version = ""
	found.Count += int32(n)
	found.State = state
	if n%2 > 0 {
		found.Heartbeat = 20 * time.Minute // other processes can have another one
	}
	if n > 0 {
		last := max(sinceStart(at), sinceStart(found.Last))
		if last = last.Truncate(time.Millisecond) + s.mark; last < sinceStart(found.Last) {
			last += time.Millisecond
		}
		found.Last = timeOf(last)
	}
	patch, err := found.Patch()
	require.NoError(s.t, err)
	_, err = s.api.Patch(context.Background(), ev.event, patch)
	require.NoError(s.t, err)
	ev.ids, ev.writer = ev.ids.or(s.fresh(n)), nil
}

// change changes a field of the Events of a key, as an admission webhook or a person does.
func (s *server) change(key, field string) {
	for _, ev := range s.all(key) {
		if ev.stranger != "" {
			continue
		}
		event := ev.event.DeepCopy()
		fakeapi.Fields[field](event)
		s.api.Put(event)
		ev.isOdd = true
	}
}

// put stores an Event that nobody here has written.
func (s *server) put(event *eventsv1.Event, key string, what strangeness, ids ids) {
	s.t.Helper()
	require.NotContains(s.t, s.events, event.Name, "there is one already")
	s.api.Put(event)
	ev := s.events[event.Name]
	ev.key, ev.stranger, ev.ids = key, what, ids
}

// remove deletes an Event, and reports whether there was one.
func (s *server) remove(name string) bool {
	ev := s.events[name]
	if ev != nil {
		require.NoError(s.t, s.api.Delete(ev.event.Namespace, name))
	}
	return ev != nil
}

// all returns the Events that have a name of a key, of any key if that is empty.
func (s *server) all(key string) (all []*remoteEvent) {
	for _, ev := range s.events {
		if key == "" || key == ev.key {
			all = append(all, ev)
		}
	}
	slices.SortFunc(all, func(a, b *remoteEvent) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.event.Name, b.event.Name))
	})
	return all
}

// check checks the Events. Each occurrence is in one at most, and so is each key.
func (s *server) check() {
	s.t.Helper()
	var all ids
	of := map[string]int{}
	for name, ev := range s.events {
		if ev.stranger != "" {
			continue
		}
		tuple := tupleOf(ev.key)
		if ev.count() != ev.ids.len() {
			s.t.Errorf("%s contains %d occurrences, and should %d", name, ev.count(), ev.ids.len())
		}
		if ev.isOdd && ev.event.Series == nil {
			s.blind[tuple] = true
		}
		if of[ev.key]++; of[ev.key] > 1 && !s.blind[tuple] {
			s.t.Errorf("%s has %d Events", ev.key, of[ev.key])
		}
		if twice := all.and(ev.ids).len(); twice > 0 && !s.blind[tuple] {
			s.t.Errorf("%s contains %d occurrences of others", name, twice)
		}
		all = all.or(ev.ids)
	}
	if both := all.and(s.dropped.not(s.doubted)).len(); both > 0 {
		s.t.Errorf("%d occurrences were dropped, and Events contain them", both)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// strangeness is what is wrong with the Event of a stranger.
type strangeness string

const (
	clash   strangeness = "clash"   // it has another key
	garbage strangeness = "garbage" // it has no times
	future  strangeness = "future"  // it has not happened yet
	hijack  strangeness = "hijack"  // its count is negative
	crowd   strangeness = "crowd"   // its count is impossible in its time
	ahead   strangeness = "ahead"   // its time is later than a clock can be ahead
)

// strange returns an Event that has a name of a key and does not belong to it.
func strange(s *series.Series, what strangeness) *eventsv1.Event {
	event := s.Event()
	switch what {
	case clash:
		event.Reason, event.Labels, event.Annotations = "Other", nil, nil
	case garbage:
		event.EventTime, event.Series.LastObservedTime = metav1.MicroTime{}, metav1.MicroTime{}
	case future:
		event.EventTime.Time = event.EventTime.Add(1000 * time.Hour)
		event.Series.LastObservedTime.Time = event.EventTime.Time
	case hijack:
		event.Series.Count = -1
	case crowd:
		event.Series.Count = 2_000_000_000
	case ahead:
		event.Series.LastObservedTime.Time = s.Last.Add(10*time.Minute + 2*time.Microsecond)
	}
	return event
}
