package tracker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/series"
)

// server is an API server that complains about requests that no recorder should
// send, and keeps books in which every occurrence must be found again.
type server struct {
	mark   time.Duration // of another process, which meddles
	t      *testing.T
	api    fakeapi.Server
	events map[string]*stored // those that exist, by name
	now    time.Duration

	// versionless: the sink returns no resourceVersion, like one that is no API
	// server.
	versionless bool

	books
	all    []*stored // also those that were deleted
	worlds []*world  // that write to it
}

// books say for each tuple where its occurrences are, unless they are in Events.
type books struct {
	occurrences account
	dropped     account // said to be lost
	doubted     account // said to be lost, but the server has them: a response was lost
	doubled     account // in Events twice; the package documentation says when
	killed      account // not written
}

type account map[string]int

// stored is what the books know of one Event.
type stored struct {
	event    *eventsv1.Event // as it is now, or was last
	key      string          // short name of the key whose name it has
	stranger strangeness     // empty if it has that key; otherwise nobody may change it
	deleted  bool
	changed  time.Duration // when, as server.now says

	// within is how much of the count is also part of the counts of entries. The rest
	// others have written, and those entries do not know.
	within map[*Entry]int
	// revived is how much of the count of a deleted Event is part of other Events, or
	// will be.
	revived int
}

func newServer(t *testing.T) *server {
	s := &server{t: t, events: map[string]*stored{}, books: books{account{}, account{}, account{}, account{}, account{}}}
	s.api.OnChange = func(_ string, before, after *eventsv1.Event) {
		switch {
		case before == nil:
			ev := &stored{event: after, within: map[*Entry]int{}, changed: s.now}
			s.all = append(s.all, ev)
			s.events[after.Name] = ev
		case after == nil:
			s.events[before.Name].deleted = true
			delete(s.events, before.Name)
		default:
			s.events[after.Name].event, s.events[after.Name].changed = after, s.now
		}
	}
	return s
}

func (ev *stored) count() int {
	switch {
	case ev.stranger != "":
		return 0
	case ev.event.Series == nil:
		return 1
	default:
		return int(ev.event.Series.Count)
	}
}

// do makes a write. It returns the result and the Event that the write was about.
func (s *server) do(w *Write) (r Result, ev *stored) {
	s.t.Helper()
	ctx := context.Background()
	if w.Creates() {
		event, err := s.api.Create(ctx, w.Series.Event())
		if err == nil {
			s.checkMetadata(w, event)
		}
		return s.result(event, err), s.events[w.Series.Name]
	}
	patch, err := w.Patch()
	require.NoError(s.t, err, "%s cannot be sent", w.Kind)
	if w.Kind != Look && !s.versionless && !bytes.Contains(patch, []byte(`"resourceVersion":"`+w.Series.Version+`"`)) {
		s.t.Errorf("%s of %s names no version: %s", w.Kind, w.Series.Name, patch)
	}
	ev = s.events[w.Series.Name]
	var before *eventsv1.Event
	if ev != nil {
		before = ev.event
	}
	event, err := s.api.Patch(ctx, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: w.Series.Namespace, Name: w.Series.Name}}, patch)
	if err == nil {
		s.compare(w, before, ev)
	}
	if err == nil && w.WritesSeries() {
		if !s.versionless && event.ResourceVersion == before.ResourceVersion {
			s.t.Errorf("%s of %s changes nothing: %s", w.Kind, w.Series.Name, patch)
		}
		s.checkMetadata(w, event)
		for has, says := range map[string]bool{
			series.LabelState:          before.Labels[series.LabelState] == event.Labels[series.LabelState],
			series.AnnotationHeartbeat: before.Annotations[series.AnnotationHeartbeat] == event.Annotations[series.AnnotationHeartbeat],
			series.AnnotationWindow:    before.Annotations[series.AnnotationWindow] == event.Annotations[series.AnnotationWindow],
		} {
			if says && !s.versionless && bytes.Contains(patch, []byte(has)) {
				s.t.Errorf("%s of %s says again what the server knows: %s", w.Kind, w.Series.Name, patch)
			}
		}
		if s.versionless && !bytes.Contains(patch, []byte(series.LabelState)) {
			s.t.Errorf("%s of %s says no state, and the Event may have changed: %s", w.Kind, w.Series.Name, patch)
		}
	}
	return s.result(event, err), ev
}

func (s *server) result(event *eventsv1.Event, err error) (r Result) {
	s.t.Helper()
	r.Event = event
	switch {
	case err == nil && s.versionless:
		event.ResourceVersion = ""
	case err == nil:
	case apierrors.IsAlreadyExists(err):
		r.Outcome = Taken
	case apierrors.IsNotFound(err):
		r.Outcome = Gone
	case apierrors.IsConflict(err):
		r.Outcome = Changed
	default:
		s.t.Errorf("invalid request: %v", err)
	}
	return r
}

// checkMetadata complains if an Event does not say the state, the heartbeat, and the
// latest note that w was to write.
func (s *server) checkMetadata(w *Write, event *eventsv1.Event) {
	s.t.Helper()
	found, err := series.FromEvent(event)
	require.NoError(s.t, err)
	if found.State != w.Series.State || w.Series.Heartbeat > 0 && found.Heartbeat != w.Series.Heartbeat || found.QuietWindow() != w.Series.QuietWindow() {
		s.t.Errorf("%s of %s leaves it %s every %s", w.Kind, w.Series.Name, found.State, found.Heartbeat)
	}
	if latest := cmp.Or(found.LastNote, found.Note); w.Series.LastNote != "" && latest != w.Series.LastNote {
		s.t.Errorf("%s of %s leaves it with the latest note %q, and not %q", w.Kind, w.Series.Name, latest, w.Series.LastNote)
	}
}

// compare complains about a patch that no recorder should send.
func (s *server) compare(w *Write, before *eventsv1.Event, ev *stored) {
	s.t.Helper()
	after := ev.event
	// No key is used for both.
	old, latest := labels.Merge(before.Annotations, before.Labels), labels.Merge(after.Annotations, after.Labels)
	changed := slices.Collect(maps.Keys(labels.Merge(old, latest)))
	changed = slices.DeleteFunc(changed, func(k string) bool {
		was, existed := old[k]
		is, exists := latest[k]
		return existed == exists && was == is
	})
	if b, a := before.Series, after.Series; b != nil && (a == nil || a.Count < b.Count || a.LastObservedTime.Before(&b.LastObservedTime)) {
		s.t.Errorf("%s of %s turns series %+v into %+v", w.Kind, w.Series.Name, b, a)
	}
	if ev.stranger != "" && after.ResourceVersion != before.ResourceVersion {
		s.t.Errorf("%s has changed the Event of another key", w.Kind)
	}
	allowed, limited := map[Kind][]string{Look: {}, Close: {series.LabelState}, Signpost: {series.AnnotationSuccessor}}[w.Kind]
	switch {
	case !limited && slices.Contains(changed, series.AnnotationSuccessor):
		s.t.Errorf("%s changes the successor", w.Kind)
	case limited && (len(changed) > 0 && !slices.Equal(slices.Compact(changed), allowed) || toJSON(s.t, before.Series) != toJSON(s.t, after.Series)):
		s.t.Errorf("%s changes %q", w.Kind, changed)
	}
}

// meddle makes another process continue an Event.
func (s *server) meddle(ev *stored, n int, state series.State, at time.Time) {
	found, err := series.FromEvent(ev.event)
	require.NoError(s.t, err)
	found.Version = ""
	found.Count += int32(n)
	found.State = state
	if n%2 > 0 {
		found.Heartbeat = otherHeartbeat
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
}

// put stores an Event that nobody here has written.
func (s *server) put(event *eventsv1.Event, key string, what strangeness) *stored {
	s.t.Helper()
	require.NotContains(s.t, s.events, event.Name, "there is one already")
	s.api.Put(event)
	ev := s.events[event.Name]
	ev.key, ev.stranger = key, what
	return ev
}

// remove deletes an Event. The result is nil if there is none.
func (s *server) remove(name string) *stored {
	ev := s.events[name]
	if ev != nil {
		require.NoError(s.t, s.api.Delete(ev.event.Namespace, name))
	}
	return ev
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// standing Events.

// earlier is an Event of an earlier process: its name, its state, its count, the
// times of its first and its latest occurrence, and the Event that it leads to.
type earlier struct {
	name        naming
	state       series.State
	count       int
	first, last time.Duration
	heartbeat   time.Duration
	successor   *naming
}

// otherHeartbeat is the heartbeat of other processes, if they have another one.
const otherHeartbeat = 20 * time.Minute

// strangeness says what is wrong with the Event of a stranger.
type strangeness string

const (
	clash   strangeness = "clash"   // it has another key
	garbage strangeness = "garbage" // it has no times
	future  strangeness = "future"  // it has not happened yet
	hijack  strangeness = "hijack"  // its count is negative
)

var strangenesses = []strangeness{clash, garbage, future, hijack}

func (at *earlier) event(k *series.Key, instance string) *eventsv1.Event {
	s := series.Series{
		Key: *k, Instance: instance, State: at.state, Namespace: "ns", Name: at.name.of(k), Note: "before",
		First: start.Add(at.first).Truncate(time.Microsecond), Last: start.Add(at.last).Truncate(time.Microsecond), Count: int32(at.count), Heartbeat: at.heartbeat,
	}
	event := s.Event()
	if at.successor != nil {
		metav1.SetMetaDataAnnotation(&event.ObjectMeta, series.AnnotationSuccessor, at.successor.of(k)+" 2026-01-02T03:04:05Z")
	}
	return event
}

// strange returns an Event that has a name of k and does not belong to k.
func strange(k *series.Key, name naming, what strangeness, now time.Duration) *eventsv1.Event {
	s := earlier{name: name, state: series.Ongoing, count: 100, first: now - time.Minute, last: now}
	event := s.event(k, cmp.Or(k.ReportingInstance, "controller-0"))
	switch what {
	case clash:
		event.Reason = "Other"
	case garbage:
		event.EventTime, event.Series.LastObservedTime = metav1.MicroTime{}, metav1.MicroTime{}
	case future:
		event.EventTime.Time = event.EventTime.Add(1000 * time.Hour)
		event.Series.LastObservedTime.Time = event.EventTime.Time
	case hijack:
		event.Series.Count = -1
	}
	return event
}

// naming is the name of an Event in a script: "base", or "unique0@10m0s" for the
// first unique name of a series that began then.
type naming struct {
	unique bool
	first  time.Duration // of a unique name, as sinceStart returns it
	n      int
}

func parseNaming(t *testing.T, text string) naming {
	t.Helper()
	if text == "base" {
		return naming{}
	}
	n, first, found := strings.Cut(strings.TrimPrefix(text, "unique"), "@")
	require.True(t, found, "%q is no name", text)
	return naming{unique: true, first: parse(t, time.ParseDuration, first), n: parse(t, strconv.Atoi, n)}
}

func (n naming) of(k *series.Key) string {
	if !n.unique {
		return k.BaseName()
	}
	return k.UniqueName(start.Truncate(time.Microsecond).Add(n.first), n.n)
}

func (n naming) String() string {
	if !n.unique {
		return "base"
	}
	return "unique" + strconv.Itoa(n.n) + "@" + n.first.String()
}

// in returns the name without its time if that is the given one.
func (n naming) in(first time.Duration) string {
	if n.unique && n.first == first {
		return "unique" + strconv.Itoa(n.n)
	}
	return n.String()
}

// nameOf returns which name of k an Event has.
func nameOf(k *series.Key, name string) (text naming, ok bool) {
	if name == k.BaseName() {
		return naming{}, true
	}
	hex := name[strings.LastIndexByte(name, '.')+1:]
	nanos, err := strconv.ParseUint(hex, 16, 64)
	if err != nil || !k.Named(name) {
		return naming{}, false
	}
	at := time.Unix(0, int64(nanos))
	first := at.Truncate(time.Microsecond)
	return naming{unique: true, first: sinceStart(first), n: int(at.Sub(first))}, true
}
