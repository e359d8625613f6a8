package tracker

import (
	"maps"
	"math"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// Entry is one series in a [Tracker]. To others it is a handle.
//
// Its first fields are the spec: what the Event should contain. The status is what the
// server is known to store. What to write next follows from the difference, see
// [Entry.need].
//
// Invariants:
//   - stored.count <= count.
//   - The state is Singleton if and only if the count is less than 2.
//   - In the phase live the Event exists: stored.count is not zero.
//   - An entry that is not active is Ongoing only if another process continues the series.
type Entry struct {
	key internedKey // never changes

	first       int64         // wall time of the first occurrence, in microseconds since 1970
	last        time.Duration // when the latest occurrence was, since Tracker.epoch
	count       int32
	rhythm      heartbeat.Rhythm // the long gaps between occurrences
	note        string
	lastNote    string            // the latest that was formatted; empty if none was since the first
	annotations map[string]string // never changes, because writes in flight share it
	notedAt     int32             // when the note was formatted last, see tenths
	state       series.State
	life        life
	silent      bool // restored, and has not occurred in this process

	phase    phase
	salt     uint8 // of the name, see Entry.name
	looks    uint8 // looks since the latest accepted write that were answered or denied, at most maxLooks
	beats    uint8 // heartbeats of this process, at most 255
	class    class // the list of the table that it is in; none: the tracker has forgotten it
	index    int32 // in that list
	beatAt   time.Duration
	stored   stored
	attempts *attempts // writes whose outcome is unknown; nil if there are none

	// The table alone uses the rest, class, and index.
	next *Entry // with the same hash
	slot schedule.Slot[*Entry]
}

// attempts are the first and the latest write whose outcomes are unknown. All of them name
// the same version, so the server has stored at most one, with a content between these two.
type attempts struct{ first, latest attempt }

type attempt struct {
	count int32
	last  int64
	at    time.Duration // when Next returned the write
}

// life says what becomes of an occurrence.
type life uint8

const (
	// active: it counts. The series can recur at any time.
	active life = iota
	// over: the series has been quiet for its window. It is active again if the occurrence
	// is within Options.MaxWindow of the latest one. Otherwise the occurrence counts, and
	// the series stays over.
	over
	// closing: the table had no room. The series waits for its last write, and is active
	// again if it recurs before.
	closing
)

// phase says what is known of the Event. It determines the next write together with the
// difference of spec and status.
type phase uint8

const (
	// unwritten: there is no Event, as far as is known. The next write creates it.
	unwritten phase = iota
	// live: the status says what the Event contains, except for attempts.
	live
	// looking: an Event with the name exists, and it is unknown what it contains. The next
	// write looks.
	looking
)

// Slot returns the place of e in the schedule of its tracker.
func (e *Entry) Slot() *schedule.Slot[*Entry] { return &e.slot }

// Namespace returns the namespace of the regarding object, which requests for e go to.
func (e *Entry) Namespace() string { return e.key.namespace.Value() }

// Key returns the key of the series. It never changes.
func (e *Entry) Key() series.Key { return e.key.full() }

func (e *Entry) isWarning() bool { return e.key.shared.eventType == corev1.EventTypeWarning }

// isOngoing reports whether the series recurs, as far as is known here.
func (e *Entry) isOngoing() bool { return e.life == active && e.state == series.Ongoing }

// isNew reports whether there has been no Event of e, and cannot be one.
func (e *Entry) isNew() bool {
	return e.phase == unwritten && e.attempts == nil && e.stored.last == 0
}

// hasNoEvent reports whether no Event contains e, as far as is known. If an Event of a series
// may be Ongoing because a response was lost, it is not: that Event must be finished.
func (e *Entry) hasNoEvent() bool { return e.isNew() || e.phase != live && e.state == series.Singleton }

// name returns the name of the Event. It is computed each time: that takes a microsecond,
// once for each write, and to keep it takes 64 bytes.
func (e *Entry) name() string {
	k := e.Key()
	if e.salt == series.Salts {
		return k.UniqueName(time.UnixMicro(e.first))
	}
	return k.Name(int(e.salt))
}

// add adds n occurrences, up to what the API can hold.
func (e *Entry) add(n int32) {
	e.count = int32(min(int64(e.count)+int64(n), math.MaxInt32))
}

// unstored returns the number of occurrences that the server does not store.
func (e *Entry) unstored() int { return int(e.count - e.stored.count) }

// occur counts an occurrence.
func (e *Entry) occur(r *rules, o Occurrence, now time.Time) {
	at := r.offset(now)
	gap := at - e.last
	if e.silent {
		e.silent, e.beatAt = false, at // the first one in this process is written at once
		if age := now.Sub(time.UnixMicro(e.stored.last)); age <= r.window.Of(e.rhythm, e.last) {
			gap = max(gap, age) // there may have been others since, but none is known
		}
	}
	switch {
	case e.count == 0: // the server has refused what was before
		e.life, e.state, e.first = active, series.Singleton, o.at(now).UnixMicro()
		e.note, e.lastNote = r.noteFor(e, &o), ""
	case gap <= r.opts.MaxWindow:
		r.window.Observe(&e.rhythm, gap, at)
		e.life, e.state = active, series.Ongoing
	default:
		e.life, e.state = over, series.Finished
	}
	if e.isFresh(at) {
		e.beatAt = min(e.beatAt, at)
	}
	e.add(1)
	e.last = max(e.last, at)
	e.describe(o, at)
}

// finish says that the series is over, unless it recurs.
func (e *Entry) finish(as series.State) {
	if e.state == series.Ongoing {
		e.state = as
	}
	if e.life == active {
		e.life = over
	}
}

// describe takes the note and the annotations of the latest occurrence.
func (e *Entry) describe(o Occurrence, at time.Duration) {
	before := e.differingNote()
	switch note := e.noteOf(&o); {
	case note == "", note == e.lastNote, note == e.note && e.lastNote == "":
	case note == e.note:
		e.lastNote = e.note // share the memory
	default:
		e.lastNote = strings.Clone(note) // it can be a part of a longer string
	}
	e.notedAt = tenths(at)
	if e.differingNote() != before {
		e.stored.stale |= partNote
	}
	if merged := mergeAnnotations(e.annotations, o.Annotations); !maps.Equal(merged, e.annotations) {
		e.annotations = merged
		e.stored.stale |= partAnnotations
	}
}

// differingNote returns the last note if it differs from the first one, which is what the
// annotation contains.
func (e *Entry) differingNote() string {
	if e.lastNote != e.note {
		return e.lastNote
	}
	return ""
}

// attempt remembers a write whose outcome is unknown.
func (e *Entry) attempt(w *Write) {
	a := attempt{w.Series.Count, w.Series.Last.UnixMicro(), w.at}
	switch {
	case e.attempts == nil:
		e.attempts = &attempts{first: a, latest: a}
	case a.count != e.attempts.latest.count || a.last != e.attempts.latest.last: // otherwise either can be stored
		e.attempts.latest = a
	}
}

// tenths returns a time since Tracker.epoch in tenths of a second. Differences of less
// than three years are right.
func tenths(at time.Duration) int32 { return int32(at / (100 * time.Millisecond)) }
