package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// server is as much of an API server as a table needs: it has Events by name,
// and what is sent to it is what a recorder would send.
type server struct {
	t       *testing.T
	events  map[string]*stored
	version int // the latest resourceVersion
}

// stored is one Event on a server, from its creation to its deletion.
type stored struct {
	event    *eventsv1.Event
	key      string      // short name of the key whose name it has
	stranger strangeness // empty if it is of that key; otherwise nobody may change it
	deleted  bool

	// meddled is how much of the count others have written without the knowledge of
	// the entry that tends it.
	meddled int

	// For the books: the entry whose count has this Event's in it, and whether the
	// count is among those that expired.
	tender *Entry
	buried bool
}

func newServer(t *testing.T) *server { return &server{t: t, events: map[string]*stored{}} }

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

// answer is what a server says to a write.
type answer string

const (
	ok     answer = "ok"
	exists answer = "exists"
	moved  answer = "changed"
	absent answer = "absent"
)

// do makes a write and returns the Event that it was about, as it is then.
func (s *server) do(w *Write) (answer, *stored) {
	s.t.Helper()
	ev := s.events[w.Series.Name]
	switch {
	case w.Creates() && ev != nil:
		return exists, ev
	case w.Creates():
		ev = &stored{event: received(s.t, w.Series.Event())}
		if ev.event.Series != nil && (ev.event.Series.Count < 2 || ev.event.Series.LastObservedTime.Before(&ev.event.EventTime)) {
			s.t.Errorf("%+v is no Event", ev.event)
		}
		s.events[w.Series.Name] = ev
		s.touch(ev)
		return ok, ev
	case ev == nil:
		return absent, nil
	}
	patch, err := w.Patch()
	if err != nil {
		s.t.Errorf("%s cannot be sent: %v", w.Kind, err)
		return absent, nil
	}
	before := ev.event
	if w.before != "" && w.before != before.ResourceVersion {
		return moved, ev
	}
	ev.event = &eventsv1.Event{}
	merged, err := json.Marshal(mergePatch(asAny(s.t, toJSON(s.t, before)), asAny(s.t, string(patch))))
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(merged, ev.event))
	s.compare(w, before, ev)
	if toJSON(s.t, before) != toJSON(s.t, ev.event) {
		s.touch(ev)
	}
	return ok, ev
}

// touch gives an Event that has changed a new resourceVersion.
func (s *server) touch(ev *stored) {
	s.version++
	ev.event.ResourceVersion = strconv.Itoa(s.version)
}

// meddle has another process go on in an Event.
func (s *server) meddle(ev *stored, n int, state series.State, at time.Time) {
	count := ev.count() + n
	last := metav1.NewMicroTime(at.Truncate(time.Microsecond))
	if ev.event.Series != nil && last.Before(&ev.event.Series.LastObservedTime) {
		last = ev.event.Series.LastObservedTime
	}
	if last.Before(&ev.event.EventTime) {
		last = ev.event.EventTime
	}
	ev.event = ev.event.DeepCopy()
	ev.event.Series = &eventsv1.EventSeries{Count: int32(count), LastObservedTime: last}
	metav1.SetMetaDataAnnotation(&ev.event.ObjectMeta, series.AnnotationState, state.String())
	s.touch(ev)
	if ev.tender != nil {
		ev.meddled += n
	}
}

// compare complains about a patch that no recorder should send.
func (s *server) compare(w *Write, before *eventsv1.Event, ev *stored) {
	s.t.Helper()
	after := ev.event
	if ev.stranger != "" && toJSON(s.t, after) != toJSON(s.t, before) {
		s.t.Errorf("%s has changed a stranger's Event", w.Kind)
	}
	if before.Series != nil {
		if after.Series == nil || after.Series.Count < before.Series.Count ||
			after.Series.LastObservedTime.Before(&before.Series.LastObservedTime) {
			s.t.Errorf("%s of %s turns series %+v into %+v", w.Kind, w.Series.Name, before.Series, after.Series)
		}
	}
	like := after.DeepCopy()
	like.Series, like.Annotations = before.Series, before.Annotations
	if toJSON(s.t, like) != toJSON(s.t, before) {
		s.t.Errorf("%s changes what cannot be changed", w.Kind)
	}
	changed := func() []string {
		names := map[string]bool{}
		for k := range maps.Keys(before.Annotations) {
			names[k] = before.Annotations[k] != after.Annotations[k]
		}
		for k := range maps.Keys(after.Annotations) {
			names[k] = before.Annotations[k] != after.Annotations[k]
		}
		maps.DeleteFunc(names, func(_ string, changed bool) bool { return !changed })
		return slices.Sorted(maps.Keys(names))
	}()
	allowed := map[WriteKind]string{WriteLook: "", WriteClose: series.AnnotationState, WriteSuccessor: series.AnnotationSuccessor}
	if only, is := allowed[w.Kind]; is {
		if fmt.Sprint(before.Series) != fmt.Sprint(after.Series) || len(changed) > 0 && !slices.Equal(changed, []string{only}) {
			s.t.Errorf("%s changes %q", w.Kind, changed)
		}
	} else if slices.Contains(changed, series.AnnotationSuccessor) {
		s.t.Errorf("%s changes the successor", w.Kind)
	}
}

// put has an Event on the server that nobody here has written.
func (s *server) put(event *eventsv1.Event, key string, what strangeness) *stored {
	s.t.Helper()
	require.NotContains(s.t, s.events, event.Name, "there is one already")
	ev := &stored{event: received(s.t, event), key: key, stranger: what}
	s.events[event.Name] = ev
	s.touch(ev)
	return ev
}

// lose deletes an Event.
func (s *server) lose(name string) *stored {
	ev := s.events[name]
	if ev != nil {
		delete(s.events, name)
		ev.deleted = true
	}
	return ev
}

// received returns an Event as a client gets it from an API server.
func received(t *testing.T, event *eventsv1.Event) *eventsv1.Event {
	t.Helper()
	var got eventsv1.Event
	require.NoError(t, json.Unmarshal([]byte(toJSON(t, event)), &got))
	return &got
}

// standText is an Event of an earlier process as a script has it: its name, its
// state, its count, the times of its first and its latest occurrence, and the
// Event that it leads to.
type standText struct {
	name        naming
	state       series.State
	count       int
	first, last time.Duration
	successor   *naming
}

// strangeness says what is wrong with the Event of a stranger.
type strangeness string

const (
	clash   strangeness = "clash"   // it is of another key
	garbage strangeness = "garbage" // it has no times
	future  strangeness = "future"  // it has not happened yet
	hijack  strangeness = "hijack"  // its count goes down
)

var strangenesses = []strangeness{clash, garbage, future, hijack}

// event returns the Event of an earlier process.
func (at *standText) event(k *series.Key, instance string) *eventsv1.Event {
	s := series.Series{
		Key: *k, Instance: instance, State: at.state, Namespace: "ns", Name: at.name.of(k), Note: "before",
		First: start.Add(at.first).Truncate(time.Microsecond), Last: start.Add(at.last).Truncate(time.Microsecond), Count: int32(at.count),
	}
	event := s.Event()
	if at.successor != nil {
		metav1.SetMetaDataAnnotation(&event.ObjectMeta, series.AnnotationSuccessor, at.successor.of(k)+" 2026-01-02T03:04:05Z")
	}
	return event
}

// strange returns an Event that has a name of k and is not of k.
func strange(k *series.Key, name naming, what strangeness, now time.Duration) *eventsv1.Event {
	s := standText{name: name, state: series.Ongoing, count: 100, first: now - time.Minute, last: now}
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
	first  time.Duration // of a unique name, as sinceStart has it
	n      int
}

func parseNaming(t *testing.T, text string) naming {
	t.Helper()
	if text == "base" {
		return naming{}
	}
	n, first, found := strings.Cut(strings.TrimPrefix(text, "unique"), "@")
	require.True(t, found, "%q is no name", text)
	name := naming{unique: true}
	var err error
	name.n, err = strconv.Atoi(n)
	require.NoError(t, err)
	name.first, err = time.ParseDuration(first)
	require.NoError(t, err)
	return name
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
	return fmt.Sprintf("unique%d@%s", n.n, n.first)
}

// in says the name without its time if that is the one given.
func (n naming) in(first time.Duration) string {
	if n.unique && n.first == first {
		return fmt.Sprintf("unique%d", n.n)
	}
	return n.String()
}

// nameOf says what name an Event of k has.
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

func compareNames(a, b naming) int {
	switch {
	case a.unique != b.unique && b.unique:
		return -1
	case a.unique != b.unique:
		return 1
	default:
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.n, b.n))
	}
}
