package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	eventsv1 "k8s.io/api/events/v1"
)

// machine is what can go through a history of events: the table (world), and
// the second implementation of the same rules (oracle). Every method returns
// what it did as a line of text, so that the lines of the two, and those of a
// golden script, can be compared.
//
// Entries are known by labels: "a/2" is the second entry of key "a".
type machine interface {
	see(key, note string, now time.Duration) string
	begin(label string, now time.Duration) string
	answer(label string, now time.Duration) string
	lost(label string, now time.Duration) string
	failed(label string) string
	refuse(label string, reason DropReason, now time.Duration) string
	expire(label string, now time.Duration) string
	beat(label string) string
	flush() string
	settled() string
	seal(reason DropReason) string
	clear(reason DropReason) string
	status(label string, now time.Duration) string
	size() string

	// What other processes do, and what becomes of this one.
	stand(key string, at standText)
	strange(key string, name naming, what strangeness, now time.Duration)
	delete(key string, name naming) string
	vanish(label string)
	server(key string) string
	meddle(key string, name naming, n int, state series.State, now time.Duration) string
	list() string
	restore(spread float64, now time.Duration) string
	kill(now time.Duration) string
}

// start is the wall time of all tests. It has no monotonic reading, so time
// goes as the test says. Its nanoseconds are not zero, to show where they are
// cut off.
var start = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)

// testKey makes the key with a short name. A name in upper case is a Warning. The
// note that is part of a key stands behind a colon; "a:rest" is what the rest of
// the tuple shares.
func testKey(name string) *series.Key {
	name, note, _ := strings.Cut(name, ":")
	if note == "rest" {
		note = series.CombinedPrefix
	}
	k := &series.Key{
		Note:                note,
		Regarding:           series.Reference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod-" + strings.ToLower(name), UID: "uid-1"},
		Type:                "Normal",
		Action:              "Starting",
		Reason:              "Started",
		ReportingController: "example.com/controller",
		ReportingInstance:   "controller-0",
	}
	if strings.ToUpper(name) == name {
		k.Type = "Warning"
	}
	return k
}

// nameWith returns the short name of the key of an occurrence with a note, where
// notes tell series apart.
func nameWith(tuple, note string) string {
	if note == "" {
		return tuple
	}
	return tuple + ":" + note
}

// tupleOf returns the part of a short name that is not about a note.
func tupleOf(name string) string {
	tuple, _, _ := strings.Cut(name, ":")
	return tuple
}

// world is a Table with what is around it: a queue of dirty entries, a server
// that has Events, and books in which every occurrence must be found again. When
// its process is killed, another comes with a new table.
type world struct {
	t      *testing.T
	opts   Options
	table  *Table
	remote *server
	lives  int // how many processes there were before
	// distinct is how many notes are told apart.
	distinct int
	// forgetful tables have a memory of closed names that is as small as they are.
	forgetful bool

	entries map[string]*Entry
	labels  map[*Entry]string
	keys    map[series.Key]string // the short names of keys
	series  map[string]int        // how many entries of a key there were
	order   []string              // labels in the order in which they came

	queued   map[*Entry]bool
	inFlight map[*Entry]Write
	pending  []Pending
	listed   []listed

	books       books
	tends       map[*Entry]*stored // the Events whose counts are part of those of entries
	unsure      map[*Entry]bool    // the server may know more than the table thinks
	blind       map[*Entry]bool    // was not let look at what stands in the way
	disowned    map[*stored]*Entry // whose count is none of its maker's any more
	settledUp   map[*Entry]bool    // done, and in the books as that
	maxInFlight int
	taken       int // occurrences that this table has seen
}

// books say for each key where its occurrences are.
type books struct {
	occurrences account
	dropped     account // said to be lost
	doubted     account // said to be lost, but the server has them: an answer was lost
	doubled     account // are on the server twice: it did not let itself be looked at
	expired     account // were on the server once
	killed      account // had not been written
}

type account map[string]int

// listed is an Event at the time when the server listed it.
type listed struct {
	key  string
	name naming
	ev   *stored
	as   *eventsv1.Event
}

func newWorld(t *testing.T, opts Options) *world {
	w := &world{
		t:       t,
		opts:    opts,
		remote:  newServer(t),
		entries: map[string]*Entry{},
		labels:  map[*Entry]string{},
		keys:    map[series.Key]string{},
		series:  map[string]int{},
		books:   books{account{}, account{}, account{}, account{}, account{}, account{}},
	}
	w.begun(start)
	return w
}

// begun has a process begin.
func (w *world) begun(now time.Time) {
	w.table = NewTable(w.opts, now)
	if !w.forgetful {
		// The oracle does not forget which names are taken.
		w.table.closed = newClosedNames(1 << 20)
	}
	w.order, w.pending, w.listed, w.taken = nil, nil, nil, 0
	w.queued = map[*Entry]bool{}
	w.inFlight = map[*Entry]Write{}
	w.tends = map[*Entry]*stored{}
	w.unsure = map[*Entry]bool{}
	w.blind = map[*Entry]bool{}
	w.disowned = map[*stored]*Entry{}
	w.settledUp = map[*Entry]bool{}
}

// key returns the key with a short name, and the instance of this process.
func (w *world) key(name string) (k *series.Key, instance string) {
	k = testKey(name)
	instance = k.ReportingInstance
	if w.opts.ShareInstances {
		k.ReportingInstance = ""
		instance = fmt.Sprintf("controller-%d", w.lives)
	}
	w.keys[*k] = name
	return k, instance
}

// tuple returns the name under which e is in the books.
func (w *world) tuple(e *Entry) string { return tupleOf(w.keys[e.Key()]) }

func (w *world) label(e *Entry) string {
	if _, ok := w.labels[e]; !ok {
		name := w.keys[e.Key()]
		w.series[name]++
		w.labels[e] = fmt.Sprintf("%s/%d", name, w.series[name])
		w.entries[w.labels[e]] = e
		w.order = append(w.order, w.labels[e])
	}
	return w.labels[e]
}

func (w *world) entry(label string) *Entry {
	w.t.Helper()
	e, ok := w.entries[label]
	if !ok {
		w.t.Fatalf("there is no entry %q, only %q", label, w.order)
	}
	return e
}

// apply does with effects what a recorder does, and tells of them.
func (w *world) apply(eff Effects) string {
	return w.applySorted(eff, false)
}

func (w *world) applySorted(eff Effects, sorted bool) string {
	text := effectsText{sorted: sorted}
	for _, e := range eff.Dirty {
		w.queued[e] = true
		text.dirty = append(text.dirty, w.label(e))
	}
	for _, e := range eff.Ended {
		text.ended = append(text.ended, w.label(e))
	}
	for _, d := range eff.Dropped {
		key := w.keys[d.Key]
		w.books.dropped[tupleOf(key)] += d.Count
		text.dropped = append(text.dropped, fmt.Sprintf("%s x%d %s", key, d.Count, d.Reason))
	}
	w.settleUp()
	return text.String()
}

// tend says whose count has that of ev in it from now on.
func (w *world) tend(e *Entry, ev *stored) {
	key := w.tuple(e)
	if ev.tender != nil && ev.tender != e && !w.settledUp[ev.tender] {
		w.t.Errorf("%s and %s tend the same Event", w.label(ev.tender), w.label(e))
	}
	if before := w.tends[e]; before != nil && before != ev {
		w.t.Errorf("%s tends two Events", w.label(e))
	}
	if ev.buried {
		w.books.expired[key] -= ev.count()
		ev.buried = false
	}
	ev.tender = e
	w.tends[e] = ev
}

// leave says that nobody tends the Event of e any more. Its count stays where it
// is: on the server, or gone from there.
func (w *world) leave(e *Entry) {
	ev := w.tends[e]
	if ev == nil {
		return
	}
	delete(w.tends, e)
	ev.tender = nil
	if ev.deleted {
		ev.buried = true
		w.books.expired[w.tuple(e)] += ev.count() - ev.meddled
	}
	ev.meddled = 0
}

// forgo says that the Event of e has no part in its count any more.
func (w *world) forgo(e *Entry) {
	if ev := w.tends[e]; ev != nil {
		delete(w.tends, e)
		ev.tender, ev.meddled = nil, 0
	}
}

// delivered is how much of the count of e is on the server, or has been there as
// far as e can know.
func (w *world) delivered(e *Entry) int {
	if ev := w.tends[e]; ev != nil {
		return ev.count() - ev.meddled
	}
	if e.isSilent() {
		return e.counted() // another entry closes the same Event
	}
	return 0
}

// settleUp closes the books of entries that have come to their end.
func (w *world) settleUp() {
	for e := range w.labels {
		if !e.done || w.settledUp[e] {
			continue
		}
		w.settledUp[e] = true
		if e.lost() == 0 && w.delivered(e) != e.counted() {
			w.t.Errorf("%s is forgotten with %d occurrences, the server has %d", w.label(e), e.counted(), w.delivered(e))
		}
		w.books.doubted[w.tuple(e)] += w.delivered(e) - int(e.wroteN)
		w.leave(e)
	}
}

func (w *world) see(key, note string, now time.Duration) string {
	w.books.occurrences[key]++
	if w.distinct > 0 {
		w.key(key + ":rest")
		key = nameWith(key, note)
	}
	k, instance := w.key(key)
	w.taken++
	e, counted, wantNote := w.table.Count(k, start.Add(now))
	if !counted {
		return w.apply(w.table.Observe(k, Occurrence{Note: note, DistinctNotes: w.distinct, Instance: instance}, start.Add(now)))
	}
	if wantNote {
		w.table.Describe(e, Occurrence{Note: note}, start.Add(now))
	}
	return "counted " + w.label(e)
}

func (w *world) begin(label string, now time.Duration) string {
	e := w.entry(label)
	delete(w.queued, e)
	write, eff, ok := w.table.Begin(e, start.Add(now))
	text := w.apply(eff)
	if !ok {
		return join("no write", text)
	}
	w.inFlight[e] = write
	w.maxInFlight = max(w.maxInFlight, len(w.inFlight))
	if _, err := write.Patch(); err != nil && !write.Creates() {
		w.t.Errorf("%s: %s cannot be patched: %v", label, write.Kind, err)
	}
	if write.Kind >= WriteLook {
		return join(requestText(&write), text)
	}
	if (write.Series.Count < 2) != (write.Series.State == series.Singleton) {
		w.t.Errorf("%s: a series of %d is %s", label, write.Series.Count, write.Series.State)
	}
	return join(writeText(write.Kind, &write.Series), text)
}

func (w *world) outcome(label string) (*Entry, Write) {
	w.t.Helper()
	e := w.entry(label)
	write, ok := w.inFlight[e]
	if !ok {
		w.t.Fatalf("no write of %s is under way", label)
	}
	delete(w.inFlight, e)
	return e, write
}

// do has the server make a write, and keeps the books.
func (w *world) do(e *Entry, write *Write) (answer, *stored) {
	before := 0
	if ev := w.remote.events[write.Series.Name]; ev != nil && !write.Creates() {
		before = ev.count()
	}
	said, ev := w.remote.do(write)
	if ev != nil {
		ev.key = w.keys[e.Key()]
	}
	switch {
	case said != ok:
	case e.done:
		// It was given up before the server took it.
		w.books.doubted[w.tuple(e)] += ev.count() - before
	case write.Creates():
		if before := w.tends[e]; before != nil && !before.deleted {
			// It could not learn that it has one already.
			if !w.blind[e] {
				w.t.Errorf("%s makes a second Event", w.label(e))
			}
			w.books.doubled[w.tuple(e)] += before.count()
		}
		w.forgo(e)
		w.tend(e, ev)
	case write.Kind < WriteLook && w.tends[e] != ev && !e.isSilent():
		w.t.Errorf("%s of %s goes to an Event that is not its own", write.Kind, w.label(e))
	}
	return said, ev
}

// answer has the server make a write, and tells the table the truth.
func (w *world) answer(label string, now time.Duration) string {
	e, write := w.outcome(label)
	said, ev := w.do(e, &write)
	at := start.Add(now)
	var again bool
	var eff Effects
	var text string
	switch {
	case said == exists:
		w.table.Taken(e, write, at)
		text, again = "taken", true
	case said == moved:
		again, eff = w.table.Changed(e, write)
		text = "changed"
	case said == absent:
		own := write.Kind < WriteLook || e.meeting != nil && e.meeting.changed
		again, eff = w.table.Gone(e, write)
		text = "gone"
		if !e.done && own {
			w.forgo(e)
		}
	case write.Kind == WriteLook:
		again, eff = w.found(e, write, ev, at)
		text = "found"
	default:
		write.Version = ev.event.ResourceVersion
		again, eff = w.table.Written(e, write, at)
		text = "written"
		if write.Kind < WriteLook {
			delete(w.unsure, e)
		}
	}
	if again {
		w.queued[e] = true
		text += ", again"
	}
	return join(text, w.apply(eff))
}

// found tells the table what it has found.
func (w *world) found(e *Entry, write Write, ev *stored, at time.Time) (again bool, eff Effects) {
	merges := e.meeting != nil && e.meeting.changed
	same := w.tends[e] == ev
	if merges && !same {
		w.forgo(e) // what it had is gone
	}
	had, count := e.exists && !merges, e.counted()
	again, eff = w.table.Found(e, write, ev.event.DeepCopy(), at)
	if e.exists && !had {
		if e.counted() == count && w.disowned[ev] == e {
			w.books.doubted[w.tuple(e)] -= ev.count()
		}
		if merges && same {
			ev.meddled = 0
		} else {
			w.tend(e, ev)
		}
		delete(w.unsure, e)
	}
	return again, eff
}

// lost has the server make a write whose answer does not arrive.
func (w *world) lost(label string, now time.Duration) string {
	e, write := w.outcome(label)
	w.do(e, &write)
	w.queued[e] = true
	w.unsure[e] = true
	return join("lost", w.apply(w.table.Failed(e, write)))
}

// failed does not reach the server.
func (w *world) failed(label string) string {
	e, write := w.outcome(label)
	w.queued[e] = true
	return join("failed", w.apply(w.table.Failed(e, write)))
}

func (w *world) refuse(label string, reason DropReason, now time.Duration) string {
	e, write := w.outcome(label)
	met := e.meeting
	cannotMerge := met != nil && met.changed && met.unseen == maxLooks-1
	switch {
	case write.Kind >= WriteLook && !cannotMerge:
	case !e.done && !e.detached:
		// It begins to count anew; what there is stays there.
		w.books.doubted[w.tuple(e)] += w.delivered(e) - int(e.wroteN)
		if ev := w.tends[e]; ev != nil && !e.exists {
			w.disowned[ev] = e
		}
		w.leave(e)
	}
	again, eff := w.table.Refuse(e, write, reason, start.Add(now))
	if met != nil && e.meeting != met {
		w.blind[e] = true
	}
	text := "refused"
	if again {
		w.queued[e] = true
		text += ", again"
	}
	return join(text, w.apply(eff))
}

func (w *world) expire(label string, now time.Duration) string {
	return w.apply(w.table.Expire(w.entry(label), start.Add(now)))
}

func (w *world) beat(label string) string { return w.apply(w.table.Beat(w.entry(label))) }

func (w *world) flush() string {
	w.pending = w.table.Flush()
	var labels []string
	for _, p := range w.pending {
		w.queued[p.Entry] = true
		labels = append(labels, w.label(p.Entry))
	}
	slices.Sort(labels) // shards come in no order
	return join("pending", labels...)
}

func (w *world) settled() string {
	var open []string
	for _, p := range w.pending {
		if !w.table.Settled(p) {
			open = append(open, w.label(p.Entry))
		}
	}
	if len(open) == 0 {
		return "all settled"
	}
	slices.Sort(open)
	return join("open", open...)
}

func (w *world) seal(reason DropReason) string {
	w.table.Seal(reason)
	return "sealed"
}

func (w *world) clear(reason DropReason) string {
	return w.applySorted(w.table.Clear(reason), true)
}

func (w *world) status(label string, now time.Duration) string {
	s, ok := w.table.Status(w.entry(label), start.Add(now))
	if !ok {
		return "none"
	}
	written := notWritten
	if !s.Written.IsZero() {
		written = s.Written.Sub(start)
	}
	return statusText(s.State, s.Last.Sub(start), written, s.Heartbeats, s.Waiting)
}

func (w *world) size() string {
	active, closing := w.table.Len()
	return fmt.Sprintf("%d active, %d closing", active, closing)
}

func (w *world) stand(key string, at standText) {
	k, _ := w.key(key)
	ev := w.remote.put(at.event(k, "controller-0"), key, "")
	w.books.occurrences[tupleOf(key)] += ev.count()
	w.listed = nil
}

func (w *world) strange(key string, name naming, what strangeness, now time.Duration) {
	k, _ := w.key(key)
	w.remote.put(strange(k, name, what, now), key, what)
	w.listed = nil
}

func (w *world) meddle(key string, name naming, n int, state series.State, now time.Duration) string {
	k, _ := w.key(key)
	ev := w.remote.events[name.of(k)]
	if ev == nil || ev.stranger != "" {
		return "nothing there"
	}
	w.remote.meddle(ev, n, state, start.Add(now))
	w.books.occurrences[tupleOf(key)] += n
	w.listed = nil
	return "changed"
}

func (w *world) delete(key string, name naming) string {
	k, _ := w.key(key)
	ev := w.remote.lose(name.of(k))
	if ev == nil {
		return "nothing there"
	}
	if ev.tender == nil {
		ev.buried = true
		w.books.expired[tupleOf(key)] += ev.count()
	} else {
		w.books.expired[tupleOf(key)] += ev.meddled
	}
	return "deleted"
}

// vanish deletes the Event that the write of an entry is to.
func (w *world) vanish(label string) {
	e := w.entry(label)
	k := e.Key()
	if write, ok := w.inFlight[e]; ok {
		if name, ok := nameOf(&k, write.Series.Name); ok {
			w.delete(w.keys[k], name)
		}
	}
}

// all returns the Events on the server that have a name of the key, of any key if
// that is empty, in an order that does not depend on hashes.
func (w *world) all(key string) (all []listed) {
	for name, ev := range w.remote.events {
		if key != "" && key != ev.key {
			continue
		}
		k, _ := w.key(ev.key)
		name, ok := nameOf(k, name)
		if !ok {
			w.t.Errorf("%v is no name for %s", name, ev.key)
		}
		all = append(all, listed{ev.key, name, ev, ev.event.DeepCopy()})
	}
	slices.SortFunc(all, func(a, b listed) int {
		return cmp.Or(strings.Compare(a.key, b.key), compareNames(a.name, b.name))
	})
	return all
}

func (w *world) server(key string) string {
	var events []string
	for _, at := range w.all(key) {
		if at.ev.stranger != "" {
			events = append(events, at.name.String()+" "+string(at.ev.stranger))
			continue
		}
		s, err := series.FromEvent(at.as)
		if err != nil {
			w.t.Errorf("what stands on the server cannot be read: %v", err)
			continue
		}
		k, _ := w.key(key)
		s.Key = *k
		text := seriesText(s)
		if successor, _, ok := strings.Cut(at.as.Annotations[series.AnnotationSuccessor], " "); ok {
			name, _ := nameOf(k, successor)
			text += " -> " + name.String()
		}
		events = append(events, text)
	}
	if len(events) == 0 {
		return "nothing"
	}
	return strings.Join(events, " | ")
}

func (w *world) list() string {
	w.listed = w.all("")
	return fmt.Sprintf("%d events", len(w.listed))
}

func (w *world) restore(spread float64, now time.Duration) string {
	var all []string
	for i, at := range w.listed {
		// No order is promised for those that come at the same time.
		now := now + time.Duration(i)*time.Microsecond
		found, err := series.FromEvent(at.as)
		if err != nil {
			continue
		}
		e, eff := w.table.Restore(found, spread, start.Add(now))
		if e == nil {
			if text := w.apply(eff); text != "" {
				w.t.Errorf("%s is passed over and has effects: %s", at.name, text)
			}
			continue
		}
		if at.ev.tender == nil || !e.isSilent() {
			w.tend(e, at.ev)
			delete(w.unsure, e)
		}
		all = append(all, join(fmt.Sprintf("%s is %s", at.name, w.label(e)), w.apply(eff)))
	}
	return strings.Join(all, " | ")
}

func (w *world) kill(now time.Duration) string {
	for _, label := range w.order {
		if e := w.entries[label]; !e.done {
			w.books.killed[w.tuple(e)] += e.counted() - w.delivered(e)
			w.leave(e)
		}
	}
	w.entries, w.labels = map[string]*Entry{}, map[*Entry]string{}
	w.lives++
	w.begun(start.Add(now))
	return "another process"
}

// check looks at the table from inside and at the books.
func (w *world) check() {
	w.t.Helper()
	checkInvariants(w.t, w.table, w.maxInFlight)

	found := account{}
	for _, e := range w.entries {
		if e.done {
			continue
		}
		_, inFlight := w.inFlight[e]
		if inFlight != e.inFlight {
			w.t.Errorf("%s: in flight is %t, should be %t", w.label(e), e.inFlight, inFlight)
		}
		// Nobody would ever come for it.
		if waits := e.need() != writeNothing || e.detached; waits && !inFlight && !w.queued[e] {
			w.t.Errorf("%s waits for a write and is not queued: %s", w.label(e), e.need())
		}
		delivered := w.delivered(e)
		if int(e.wroteN) > delivered || int(e.wroteN) < delivered && !w.unsure[e] {
			w.t.Errorf("%s: the table takes the server to know %d, it knows %d", w.label(e), e.wroteN, delivered)
		}
		found[w.tuple(e)] += e.counted() - delivered
		if ev := w.tends[e]; ev != nil && ev.deleted {
			found[w.tuple(e)] += delivered // which it does not know yet
		}
	}
	for _, ev := range w.remote.events {
		found[tupleOf(ev.key)] += ev.count()
	}
	b := w.books
	for key, want := range b.occurrences {
		sum := found[key] + b.expired[key] + b.dropped[key] + b.killed[key] - b.doubted[key] - b.doubled[key]
		if sum != want {
			w.t.Errorf("%s: %d occurrences, but in the books are %d: %d on the server or still to be written, %+v", key, want, sum, found[key], b)
		}
	}
	if got := w.table.Occurrences(); got != uint64(w.taken) {
		w.t.Errorf("%d occurrences came in, the table says %d", w.taken, got)
	}
}

// What machines say.

type effectsText struct {
	dirty, ended, dropped []string
	sorted                bool
}

func (e effectsText) String() string {
	var parts []string
	for _, part := range []struct {
		name  string
		items []string
	}{{"dirty", e.dirty}, {"ended", e.ended}, {"dropped", e.dropped}} {
		if e.sorted {
			slices.Sort(part.items)
		}
		if len(part.items) > 0 {
			parts = append(parts, part.name+" "+strings.Join(part.items, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

func join(first string, rest ...string) string {
	rest = slices.DeleteFunc(slices.Clone(rest), func(s string) bool { return s == "" })
	if len(rest) == 0 {
		return first
	}
	return first + "; " + strings.Join(rest, ", ")
}

// writeText tells of a write: "create Singleton x1 base 1m0s to 1m0s "note"".
func writeText(kind WriteKind, s *series.Series) string {
	text := fmt.Sprintf("%s %s x%d %s %s to %s", kind, s.State, s.Count, seriesName(s), sinceStart(s.First), sinceStart(s.Last))
	return text + noteText(s)
}

// seriesText tells of an Event: "base Singleton x1 1m0s to 1m0s "note"".
func seriesText(s *series.Series) string {
	text := fmt.Sprintf("%s %s x%d %s to %s", seriesName(s), s.State, s.Count, sinceStart(s.First), sinceStart(s.Last))
	return text + noteText(s)
}

func noteText(s *series.Series) (text string) {
	if s.Note != "" {
		text += fmt.Sprintf(" %q", s.Note)
	}
	if s.LastNote != "" {
		text += fmt.Sprintf(" now %q", s.LastNote)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Annotations)) {
		text += " " + k + "=" + s.Annotations[k]
	}
	if s.Key.ReportingInstance == "" {
		text += " by " + s.Instance
	}
	return text
}

// requestText tells of a request that is not about the Event of its entry: "look
// base".
func requestText(w *Write) string {
	name, _ := nameOf(&w.Series.Key, w.Series.Name)
	text := fmt.Sprintf("%s %s", w.Kind, name)
	if w.Kind == WriteSuccessor {
		var patch eventsv1.Event
		if err := json.Unmarshal(w.patch, &patch); err != nil {
			return err.Error()
		}
		to, _, _ := strings.Cut(patch.Annotations[series.AnnotationSuccessor], " ")
		name, _ := nameOf(&w.Series.Key, to)
		text += " -> " + name.String()
	}
	return text
}

// seriesName says what name an Event has.
func seriesName(s *series.Series) string {
	if s.Namespace != "ns" {
		return "in " + s.Namespace
	}
	if name, ok := nameOf(&s.Key, s.Name); ok {
		return name.in(sinceStart(s.First))
	}
	return s.Name
}

// notWritten is no time.
const notWritten = time.Duration(math.MinInt64)

func statusText(state series.State, last, written time.Duration, beats int, waiting bool) string {
	text := fmt.Sprintf("%s, last %s", state, micros(last))
	if written != notWritten {
		text += fmt.Sprintf(", written %s", written)
	}
	if beats > 0 {
		text += fmt.Sprintf(", %d heartbeats", beats)
	}
	if waiting {
		text += ", waiting"
	}
	return text
}

// sinceStart is the time of an Event, which knows microseconds, in a test.
func sinceStart(t time.Time) time.Duration { return t.Sub(start.Truncate(time.Microsecond)) }
