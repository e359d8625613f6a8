package series

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
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
	written(label string, now time.Duration) string
	gone(label string) string
	taken(label string, now time.Duration) string
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
}

// start is the wall time of all tests. It has no monotonic reading, so time
// goes as the test says. Its nanoseconds are not zero, to show where they are
// cut off.
var start = time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC)

// testKey makes the key with a short name. A name in upper case is a Warning.
func testKey(name string) *Key {
	k := &Key{
		Regarding:           Reference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod-" + strings.ToLower(name), UID: "uid-1"},
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

// world is a Table with what is around it: a queue of dirty entries, a server
// that has Events, and books in which every occurrence must be found again.
type world struct {
	t     *testing.T
	table *Table

	entries map[string]*Entry
	labels  map[*Entry]string
	keys    map[Key]string // the short names of keys
	series  map[string]int // how many entries of a key there were
	order   []string       // labels in the order in which they came

	queued   map[*Entry]bool
	inFlight map[*Entry]Write
	pending  []Pending

	// The books. An Event is that of an entry; when the server loses it, the
	// count is the table's again. One that is given up stays as it is.
	occurrences int
	onServer    map[*Entry]int
	abandoned   int
	dropped     int
	maxInFlight int
}

func newWorld(t *testing.T, opts Options) *world {
	return &world{
		t:        t,
		table:    NewTable(opts, start),
		entries:  map[string]*Entry{},
		labels:   map[*Entry]string{},
		keys:     map[Key]string{},
		series:   map[string]int{},
		queued:   map[*Entry]bool{},
		inFlight: map[*Entry]Write{},
		onServer: map[*Entry]int{},
	}
}

func (w *world) label(e *Entry) string {
	if _, ok := w.labels[e]; !ok {
		name := w.keys[e.key]
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
	var text effectsText
	for _, e := range eff.Dirty {
		w.queued[e] = true
		text.dirty = append(text.dirty, w.label(e))
	}
	for _, e := range eff.Ended {
		text.ended = append(text.ended, w.label(e))
	}
	for _, d := range eff.Dropped {
		w.dropped += d.Count
		text.dropped = append(text.dropped, fmt.Sprintf("%s x%d %s", w.keys[d.Key], d.Count, d.Reason))
	}
	return text.String()
}

func (w *world) see(key, note string, now time.Duration) string {
	k := testKey(key)
	w.keys[*k] = key
	w.occurrences++
	e, counted, wantNote := w.table.Count(k, start.Add(now))
	if !counted {
		return w.apply(w.table.Observe(k, Occurrence{Note: note}, start.Add(now)))
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
	if (write.Series.Count < 2) != (write.Series.State == Singleton) {
		w.t.Errorf("%s: a series of %d is %s", label, write.Series.Count, write.Series.State)
	}
	if _, err := write.Series.Patch(); err != nil && !write.Creates() {
		w.t.Errorf("%s: %s cannot be patched: %v", label, write.Kind, err)
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

func (w *world) written(label string, now time.Duration) string {
	e, write := w.outcome(label)
	done := e.done
	again, eff := w.table.Written(e, write, start.Add(now))
	if !done { // else it is in the books as dropped
		w.onServer[e] = int(write.Series.Count)
	}
	if again {
		w.queued[e] = true
		return join("again", w.apply(eff))
	}
	return join("written", w.apply(eff))
}

func (w *world) gone(label string) string {
	e, write := w.outcome(label)
	if !e.done {
		delete(w.onServer, e)
		w.queued[e] = true
	}
	w.table.Gone(e, write)
	return "gone"
}

func (w *world) taken(label string, now time.Duration) string {
	e, write := w.outcome(label)
	w.queued[e] = true
	w.table.Taken(e, write, start.Add(now))
	return "taken"
}

func (w *world) failed(label string) string {
	e, write := w.outcome(label)
	w.queued[e] = true
	return join("failed", w.apply(w.table.Failed(e, write)))
}

func (w *world) refuse(label string, reason DropReason, now time.Duration) string {
	e, write := w.outcome(label)
	if !e.done {
		// It begins to count anew; what there is stays there.
		w.abandoned += w.onServer[e]
		delete(w.onServer, e)
	}
	return join("refused", w.apply(w.table.Refuse(e, write, reason, start.Add(now))))
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
	eff := w.table.Clear(reason)
	text := effectsText{sorted: true}
	for _, e := range eff.Ended {
		text.ended = append(text.ended, w.label(e))
	}
	for _, d := range eff.Dropped {
		w.dropped += d.Count
		text.dropped = append(text.dropped, fmt.Sprintf("%s x%d %s", w.keys[d.Key], d.Count, d.Reason))
	}
	return text.String()
}

func (w *world) status(label string, now time.Duration) string {
	s, ok := w.table.Status(w.entry(label), start.Add(now))
	if !ok {
		return "none"
	}
	written := time.Duration(-1)
	if !s.Written.IsZero() {
		written = s.Written.Sub(start)
	}
	return statusText(s.State, s.Last.Sub(start), written, s.Heartbeats, s.Waiting)
}

func (w *world) size() string {
	active, closing := w.table.Len()
	return fmt.Sprintf("%d active, %d closing", active, closing)
}

// check looks at the table from inside and at the books.
func (w *world) check() {
	w.t.Helper()
	checkInvariants(w.t, w.table, w.maxInFlight)

	open := 0
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
		if int(e.wroteN) != w.onServer[e] {
			w.t.Errorf("%s: the table takes the server to know %d, it knows %d", w.label(e), e.wroteN, w.onServer[e])
		}
		open += e.lost()
	}
	sum := w.abandoned
	for _, n := range w.onServer {
		sum += n
	}
	if sum+w.dropped+open != w.occurrences {
		w.t.Errorf("%d occurrences, but %d are on the server, %d dropped and %d still to be written", w.occurrences, sum, w.dropped, open)
	}
	if got := w.table.Occurrences(); got != uint64(w.occurrences) {
		w.t.Errorf("%d occurrences came in, the table says %d", w.occurrences, got)
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
func writeText(kind WriteKind, s *Series) string {
	text := fmt.Sprintf("%s %s x%d %s %s to %s", kind, s.State, s.Count, nameText(s), sinceStart(s.First), sinceStart(s.Last))
	if s.Note != "" {
		text += fmt.Sprintf(" %q", s.Note)
	}
	if s.LastNote != "" {
		text += fmt.Sprintf(" now %q", s.LastNote)
	}
	for _, k := range slices.Sorted(maps.Keys(s.Annotations)) {
		text += " " + k + "=" + s.Annotations[k]
	}
	return text
}

// nameText says what name an Event has: the base name, or which of the unique
// ones.
func nameText(s *Series) string {
	if s.Namespace != "ns" {
		return "in " + s.Namespace
	}
	if s.Name == s.Key.BaseName() {
		return "base"
	}
	for n := range 100 {
		if s.Name == s.Key.UniqueName(s.First, n) {
			return fmt.Sprintf("unique%d", n)
		}
	}
	return s.Name
}

func statusText(state State, last, written time.Duration, beats int, waiting bool) string {
	text := fmt.Sprintf("%s, last %s", state, last)
	if written >= 0 {
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
