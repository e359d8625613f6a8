package tracker

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync/atomic"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// Entry is one series in a [Tracker]: a machine, and where the table has it. To others
// it is a handle.
//
// The machine consists of the spec (what the Event should say), the status (what the
// server is known to say, and why a write is due), the phase (what is known of the
// Event), and the life (whether the series accepts occurrences). Its methods know
// nothing of the table: they are functions of the entry and a [step].
//
// A key can have several entries: one that accepts occurrences, and those of
// earlier series that wait for their last write.
//
// The order of the fields wastes no room: an Entry has 192 bytes, which are whole
// cache lines. An occurrence reads the first one, and changes the second one. What few
// entries have is in rare, in spec.latest, and in key.rare.
//
// Tracker.mu guards all fields except key, counter, and spec.notedAt.
type Entry struct {
	key  internedKey // never changes
	rare *rare       // nil if there is nothing

	counter counter // an occurrence changes it without a lock
	spec    spec
	status  status
	phase   phase
	life    life
	silent  bool // restored, and has not occurred since

	// The table alone uses the rest.
	class evictionClass // the list that it is in
	index int32         // in that list
	slot  heartbeat.Slot[*Entry]
}

// spec is what the Event of a series should say. Only [Entry.drain] brings it up to
// date with the counter.
type spec struct {
	note   string
	latest *latest // nil if there is nothing
	first  int64   // wall time of the first occurrence, microseconds since 1970
	progress
	notedAt atomic.Int32 // when the note was formatted last, see tenths; an occurrence changes it without a lock
}

// progress is how far a series has come, as its Event says it or should say it.
type progress struct {
	count    int32
	revision revision // of the spec
	state    series.State
}

// latest is what the latest occurrences have said besides the first one.
type latest struct {
	note        string // the latest that was formatted; empty if it was that of the first occurrence
	annotations map[string]string
}

// status is what the server is known to say about a series.
//
// Invariants:
//   - spec.revision covers revision, and 0 <= count <= spec.count.
//   - If revision is zero, no change of this process is in the Event, and a write is due
//     in the phase live.
//   - In the phases live and conflicted the Event exists: neither names nor count is zero.
//   - beatAt is valid if the series is Ongoing and its phase is live or refused.
type status struct {
	version  uint64        // resourceVersion of the Event to patch; zero if unknown
	at       time.Duration // of the latest write that the server accepted, or when it refused one
	beatAt   time.Duration // when the next heartbeat is due
	last     int64         // the latest time that the server knows or may know; microseconds since 1970
	progress               // the count is zero if the Event has never existed; if it has vanished, what it said
	unsaid   parts         // of the Event that may differ from what the series says
	due      reasons       // to write, besides the phase and a new state

	beats uint8 // heartbeats of this process so far, limited to 255
	names uint8 // how many the Event has had, at first the base name; zero until its first write begins
}

// parts are parts of an Event, as bits. A patch contains those that the Event may lack.
type parts uint8

const (
	partHeartbeat   parts = 1 << iota // the annotation of the heartbeat
	partNote                          // the last note
	partAnnotations                   // annotations of the caller
	partManaged                       // managedFields, which a patch clears
)

func (p parts) has(part parts) bool { return p&part != 0 }

// with returns p with or without part.
func (p parts) with(part parts, is bool) parts {
	if is {
		return p | part
	}
	return p &^ part
}

// reasons say why a write of a live Event is due, as bits. The first one that is set
// determines the write; see [Entry.need].
type reasons uint8

const (
	dueBeat  reasons = 1 << iota // it is time for a heartbeat
	dueNext                      // a heartbeat will be due with the next occurrence; see Entry.beat
	dueCount                     // someone waits for a count that the server does not know yet
	dueLook                      // whose the Event under the base name is must be known before it can lead here
	dueLead                      // the Event under the base name is to lead here

	dueBase = dueLook | dueLead // about the Event under the base name
)

func (d reasons) has(reason reasons) bool { return d&reason != 0 }

// rare is what few entries have.
type rare struct {
	uniqueName string                // of the Event; empty if it has the base name
	instance   unique.Handle[string] // reportingInstance of the Event; zero value: that of the key
	attempts   []attempt             // writes whose outcome is unknown: the oldest, and the latest
	claim      claim                 // valid in the phases claiming and conflicted
	refusal    DropReason            // valid in the phase refused
	hold       hold
	pace       pace
	said       time.Duration // the window that the Event says; zero: series.FinishAfter
	listing    *listing      // of an entry that is a list; see list.go
}

// pace is what is known of the times between the occurrences of a series. It determines the
// window. The zero value stands for a fast series that occurs in this process alone.
type pace struct {
	rhythm heartbeat.Rhythm // the long gaps here

	// What the Event of another process says about the gaps there is assumed to be true for
	// a while.
	since  time.Duration // the first occurrence here, or when the series was restored
	first  time.Duration // the least window until the next occurrence
	window time.Duration // the least window for as long as it takes to learn the rhythm here

	theirs time.Duration // the latest occurrence in another process that is known; zero: none
}

// assumed returns the least window that follows from what another process has said. last is
// the latest occurrence. It is zero if nothing does.
func (p pace) assumed(last time.Duration) time.Duration {
	switch age := last - p.since; {
	case age <= 0:
		return p.first
	case age < p.window:
		return p.window
	default:
		return 0
	}
}

// due returns when a series is over whose latest occurrence was at last, or when to look
// again because its window can have become shorter.
func (p pace) due(window heartbeat.Window, last, now time.Duration) time.Duration {
	assumed := p.assumed(last)
	if assumed == 0 {
		return window.Due(p.rhythm, last, now)
	}
	// A fast occurrence, of which the schedule does not know, ends the assumption.
	return min(last+max(window.Of(p.rhythm, last), assumed), window.Due(p.rhythm, now, now))
}

// hold says until when and why a series must not write. The zero value permits writes.
type hold struct {
	until    time.Duration
	why      cause
	failures int // requests that have failed in a row
}

// extend forbids writes before a time, unless they are forbidden for longer already.
func (h *hold) extend(until time.Duration, why cause) {
	if h.why == free || until > h.until {
		h.until, h.why = until, why
	}
}

// left returns until when the series must not write. ok is false if it may.
func (h hold) left(at time.Duration) (until time.Duration, ok bool) {
	if h.why == free || h.until <= at {
		return 0, false
	}
	return h.until, true
}

// isDenied reports whether the server has denied the series more often in a row than n
// times, and nothing of its namespace that was denied for long has passed since.
func (h hold) isDenied(n int) bool { return h.failures > n && h.why == denial }

type cause uint8

const (
	free       cause = iota // it may write
	backoff                 // its last request has failed
	denial                  // the same, for longer, because the server has denied it
	encouraged              // the same, but another one of the namespace has passed since
	turn                    // it is a list, which is not made with those of other processes
)

// attempt is what a write said whose outcome is unknown.
type attempt struct {
	progress
	last int64 // microseconds since 1970
}

const maxAttempts = 32

// life says what becomes of an occurrence of the key. An entry that is accepting or
// resting has it; an entry that is closing or forgotten does not.
type life uint8

const (
	// accepting: the series can recur at any time.
	accepting life = iota
	// resting: the series has been quiet for its window, so it is over. It continues
	// if it recurs within Options.MaxWindow of its latest occurrence.
	resting
	// closing: another series of the key would begin with the next occurrence, or the
	// table had no room. The series waits for its last write.
	closing
	// forgotten: the tracker holds the entry no longer.
	forgotten
)

// revision counts the changes of a spec. It wraps around. Zero stands for none.
type revision uint32

func (r revision) next() revision { return max(r+1, 1) }

// covers reports whether r is other or a later one.
func (r revision) covers(other revision) bool { return r != 0 && int32(r-other) >= 0 }

// tenths returns a time since Tracker.epoch in tenths of a second. Differences of less
// than three years are right.
func tenths(at time.Duration) int32 { return int32(at / (100 * time.Millisecond)) }

// Slot returns the place of e in the schedule of its tracker.
func (e *Entry) Slot() *heartbeat.Slot[*Entry] { return &e.slot }

// Gate returns what the next request for e must pass. Tracker.mu must be held.
func (e *Entry) Gate() heartbeat.Gate {
	if l := e.listing(); l != nil {
		return heartbeat.Gate{Namespace: l.page.Namespace, Verb: List.Verb()}
	}
	return heartbeat.Gate{Namespace: e.key.namespace.value, Verb: e.need().Verb()}
}

// Tried reports whether the latest request for e has failed or was denied. Tracker.mu must
// be held.
func (e *Entry) Tried() bool { return e.failures() > 0 }

// Key returns the key of the series. It never changes.
func (e *Entry) Key() series.Key { return e.key.full() }

func (e *Entry) isWarning() bool { return e.key.eventType() == corev1.EventTypeWarning }

// last returns when the latest occurrence was, since Tracker.epoch. It needs no
// lock.
func (e *Entry) last() time.Duration { return e.counter.last() }

// drain moves what the counter holds to the spec.
func (e *Entry) drain() { e.add(e.counter.take()) }

// lost returns the number of occurrences that the server does not know of.
func (e *Entry) lost() int { return int(e.spec.count - e.known()) }

// known returns the number of occurrences that the server knows of.
func (e *Entry) known() int32 {
	if !e.exists() {
		return 0
	}
	return e.status.count
}

// hasExisted reports whether the Event exists or has existed, so that a create is not the
// first one.
func (e *Entry) hasExisted() bool { return e.status.count > 0 }

// exists reports whether the Event exists, as far as is known.
func (e *Entry) exists() bool { return e.phase == live || e.phase == conflicted }

// occur counts an occurrence, which continues the series, and reports whether it changes
// what is to be written.
func (e *Entry) occur(r *rules, at time.Duration) (isNews bool) {
	isFirst := e.silent && e.isOngoing()
	e.learn(r, at-e.last(), at)
	e.counter.occurred(at)
	e.add(1)
	if isFirst && r.opts.Scope == SameController {
		// The process that has left the series may run on, and would take it for over.
		e.status.due |= dueCount
	}
	if isFirst {
		e.resume(r, e.said(), at-time.UnixMicro(e.status.last).Sub(r.epoch))
	}
	if e.life == resting && e.hasAttempts() {
		e.status.due |= dueCount // the Event may say Finished
	}
	wasOngoing := e.isOngoing()
	e.spec.state, e.life = series.Ongoing, accepting
	if e.status.due.has(dueNext) {
		e.status.due |= dueBeat
		return true
	}
	return isFirst || !wasOngoing
}

// isOngoing reports whether the series is Ongoing, and accepts occurrences.
func (e *Entry) isOngoing() bool { return e.life == accepting && e.spec.state == series.Ongoing }

// countsFast reports whether occurrences of e need no lock: none of them changes more than
// the count.
func (e *Entry) countsFast() bool {
	return e.isOngoing() && !e.silent && (!e.status.due.has(dueNext) || e.status.due.has(dueBeat))
}

func (e *Entry) add(n int) {
	if n == 0 {
		return
	}
	e.raise(int64(n))
	e.key.shared.taken += uint64(n)
	e.silent = false
	e.change()
}

func (e *Entry) change() { e.spec.revision = e.spec.revision.next() }

// raise increases the count, up to what the API can hold.
func (e *Entry) raise(n int64) {
	e.spec.count = int32(min(int64(e.spec.count)+n, math.MaxInt32))
}

// describe takes the note and the annotations of the latest occurrence.
func (e *Entry) describe(o Occurrence, at time.Duration) {
	before := e.spec.differingNote()
	if o.Note != "" {
		if o.Note != e.spec.note || e.spec.latestOrZero().note != "" {
			e.spec.setLastNote(o.Note)
		}
		e.spec.notedAt.Store(tenths(at))
	}
	if e.spec.differingNote() != before {
		e.status.unsaid |= partNote
	}
	if len(o.Annotations) > 0 {
		merged := mergeAnnotations(e.spec.latestOrZero().annotations, o.Annotations)
		if !maps.Equal(merged, e.spec.latestOrZero().annotations) {
			e.status.unsaid |= partAnnotations
		}
		e.spec.setAnnotations(merged)
	}
	e.change()
}

// compare says which parts the Event found does not have. The last note, if e knows none,
// it takes from found.
func (e *Entry) compare(r *rules, found *series.Series) {
	if e.spec.latestOrZero().note == "" {
		e.spec.setLastNote(found.LastNote)
	}
	var unsaid parts
	for k, v := range e.spec.latestOrZero().annotations {
		if said, ok := found.Annotations[k]; !ok || said != v {
			unsaid = partAnnotations
		}
	}
	e.status.unsaid = unsaid.
		with(partNote, e.spec.differingNote() != found.LastNote).
		with(partHeartbeat, found.Heartbeat != r.opts.HeartbeatInterval).
		with(partManaged, found.Managed)
	e.setSaid(found.QuietWindow())
}

// learn records that an occurrence at the time at came gap after the one before.
func (e *Entry) learn(r *rules, gap, at time.Duration) {
	if window := r.opts.window(); gap >= window.Slow() {
		window.Observe(&e.more().pace.rhythm, gap, at)
	}
}

// resume takes up the rhythm of a series that was Ongoing in another process. Its Event
// says the window, and that its latest occurrence was age before the first one here.
//
// There may have been others in between, and the other process may have been away. So the
// age is no gap of the loop beyond what the window permits. But until the next occurrence
// shows the rhythm, the series may be as slow as it looks.
func (e *Entry) resume(r *rules, said, age time.Duration) {
	e.learn(r, min(age, said/21*10), e.last())
	if age > said {
		age = 0
	}
	e.assume(r, said, r.opts.window().For(age))
}

// assume says that the window is at least this long until this process can know it, and
// that it is at least first until the next occurrence.
func (e *Entry) assume(r *rules, window, first time.Duration) {
	window = min(window, r.opts.MaxWindow)
	if first = max(first, window); first > r.opts.FinishAfter {
		p := &e.more().pace
		p.since, p.first, p.window = e.last(), first, window
	}
}

func (e *Entry) pace() pace { return e.rareOrZero().pace }

// window returns for how long the series may be quiet before it is over.
func (e *Entry) window(r *rules) time.Duration {
	return max(e.rhythmic(r), e.pace().assumed(e.last()))
}

// promise returns the window to write. It contains nothing that is assumed, or a series
// would not become fast again if its process restarts often. But one that is Ongoing, and
// has been quiet for longer, is at least as slow as that: readers would take it for stale
// before the next heartbeat.
func (e *Entry) promise(r *rules, at time.Duration) time.Duration {
	if e.silent {
		return e.said()
	}
	window := e.rhythmic(r)
	if quiet := at - e.last(); e.isOngoing() && quiet > window {
		quiet = (quiet + time.Second - 1).Truncate(time.Second) // people read it
		return r.opts.window().For(quiet)
	}
	return window
}

// rhythmic returns the window that follows from the gaps of the series.
func (e *Entry) rhythmic(r *rules) time.Duration {
	return r.opts.window().Of(e.pace().rhythm, e.last())
}

func (e *Entry) said() time.Duration { return cmp.Or(e.rareOrZero().said, series.FinishAfter) }

func (e *Entry) setSaid(window time.Duration) {
	if window == series.FinishAfter {
		window = 0
	}
	if window != e.rareOrZero().said {
		e.more().said = window
	}
}

// latestOrZero returns what the latest occurrences have said besides the first one.
func (s *spec) latestOrZero() latest {
	if s.latest == nil {
		return latest{}
	}
	return *s.latest
}

func (s *spec) setLastNote(note string) {
	if note == s.note {
		note = s.note // share the memory
	}
	s.setLatest(latest{note, s.latestOrZero().annotations})
}

func (s *spec) setAnnotations(annotations map[string]string) {
	s.setLatest(latest{s.latestOrZero().note, annotations})
}

func (s *spec) setLatest(to latest) {
	switch {
	case s.latest != nil:
		*s.latest = to
	case to.note != "" || len(to.annotations) > 0:
		s.latest = &latest{to.note, to.annotations} // the address of to would put it on the heap each time
	}
}

// differingNote returns the last note if it differs from the first one, which is what
// the annotation says.
func (s *spec) differingNote() string {
	if last := s.latestOrZero().note; last != s.note {
		return last
	}
	return ""
}

// noRare is the rare of entries that have none. It never changes.
var noRare rare

// rareOrZero returns the rare of e to read it.
func (e *Entry) rareOrZero() *rare {
	if e.rare == nil {
		return &noRare
	}
	return e.rare
}

// more returns the rare of e to change it. It makes one if there is none.
func (e *Entry) more() *rare {
	if e.rare == nil {
		e.rare = &rare{}
	}
	return e.rare
}

func (e *Entry) listing() *listing { return e.rareOrZero().listing }

func (e *Entry) instance() string {
	if instance := e.rareOrZero().instance; instance != (unique.Handle[string]{}) {
		return instance.Value()
	}
	return e.key.shared.value.reporter
}

// name returns the name of the Event, which is empty until its first write begins.
// The base name is computed each time: that takes a microsecond, once for each
// write, and to keep it takes 64 bytes.
func (e *Entry) name() string {
	switch {
	case e.status.names == 0:
		return ""
	case e.hasUniqueName():
		return e.rare.uniqueName
	default:
		return e.baseName()
	}
}

func (e *Entry) baseName() string {
	k := e.Key()
	return k.BaseName()
}

func (e *Entry) rename(name string) {
	e.status.names = max(e.status.names, 1)
	switch {
	case name != e.baseName():
		e.more().uniqueName = name
	case e.rare != nil:
		e.rare.uniqueName = ""
	}
}

// hasUniqueName reports whether the name differs from the base name.
func (e *Entry) hasUniqueName() bool { return e.rareOrZero().uniqueName != "" }

func (e *Entry) hasBaseName() bool { return e.status.names > 0 && !e.hasUniqueName() }

func (e *Entry) hasAttempts() bool { return len(e.rareOrZero().attempts) > 0 }

// attempt remembers a write whose outcome is unknown. The first attempt stays,
// because it has the smallest count: without it, a part of what others have
// counted would be taken for e's own.
func (e *Entry) attempt(w *Write) {
	x := e.more()
	if len(x.attempts) == maxAttempts {
		x.attempts = slices.Delete(x.attempts, 1, 2)
	}
	x.attempts = append(x.attempts, attempt{w.progress, w.Series.Last.UnixMicro()})
}

// attempted returns the first write whose outcome is unknown and that has said what
// found says. ok is false if there is none.
func (e *Entry) attempted(found *series.Series) (a attempt, ok bool) {
	for _, a := range e.rareOrZero().attempts {
		if a.count == found.Count && a.last == found.Last.UnixMicro() {
			return a, true
		}
	}
	return attempt{}, false
}

// smallestAttempt returns the smallest count of the writes whose outcome is unknown.
// There must be one.
//
// If the Event has vanished, another process that knows it may have created it again. Then
// no attempt was carried out, and only what the server knew before counts in both.
func (e *Entry) smallestAttempt() int32 {
	least := slices.MinFunc(e.rare.attempts, func(a, b attempt) int { return cmp.Compare(a.count, b.count) }).count
	if e.hasExisted() && !e.exists() {
		least = min(least, e.status.count)
	}
	return least
}

func (e *Entry) hold() hold { return e.rareOrZero().hold }

func (e *Entry) failures() int { return e.hold().failures }

// setFailures says how many requests for e have failed in a row, and delays the next one
// accordingly.
func (e *Entry) setFailures(r *rules, failures int, at time.Duration) {
	switch {
	case failures > 0:
		e.more().hold = hold{at + r.backoff(failures), backoff, failures}
	case e.rare != nil:
		e.rare.hold = hold{}
		if reflect.ValueOf(e.rare).Elem().IsZero() {
			e.rare = nil
		}
	}
}

// release permits the next request of e although the last one has failed.
func (e *Entry) release() {
	if e.rare != nil {
		e.rare.hold.until, e.rare.hold.why = 0, free
	}
}
