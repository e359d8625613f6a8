package tracker

import (
	"cmp"
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
// Its first fields are the spec: what the Event should contain. The status is what the server is
// known to store. What to write next follows from the difference, see [Entry.need].
type Entry struct {
	key internedKey // never changes

	// first is the wall time of the first occurrence, in microseconds since 1970. It identifies the Event:
	// who finds it there has begun the Event, or has continued it.
	first int64
	// last is when the latest occurrence was, since Tracker.epoch. It never decreases.
	last time.Duration
	// count is at least stored.count. If it is zero, see isEmpty.
	count       int32
	rhythm      heartbeat.Rhythm // the long gaps between occurrences
	note        string
	lastNote    string            // the latest that was formatted; empty if none was since the first
	annotations map[string]string // never changes, because writes in flight share it
	notedAt     int32             // when the note was formatted last, see tenths
	// left is when the Event is stale as another process has left it, in seconds since Tracker.epoch: until then, that
	// process may emit the series. Zero if no other process is known.
	left int32
	// state is Singleton if and only if count is less than 2, and Ongoing in the life active only.
	state  series.State
	life   life
	silent bool // restored, and has not occurred in this process: its Event is not created again

	phase phase
	salt  uint8 // of the name, see Entry.name; it never decreases, so no look leads to a name a second time
	looks uint8 // looks since the latest accepted write that the server has handled, at most 254
	beats uint8 // heartbeats of this process, at most 255
	class class // the list of the table that it is in; classNone: the tracker has forgotten it
	index int32 // in that list
	waits bool  // the heartbeat is due, and waits for the end or the next occurrence
	// beatAt is when a heartbeat is due if there is news. It has a meaning in the phase live only.
	beatAt time.Duration
	// stored is the status. Its count is zero if there is no Event: not zero in the phase live, and zero
	// in the phase unwritten.
	stored   stored
	attempts *attempts // writes whose outcome is unknown; nil if there are none

	// The table alone uses the rest, class, and index.
	next *Entry // with the same hash
	slot schedule.Slot[*Entry]
}

// attempts are the first and the latest write whose outcomes are unknown. All name the same version,
// so the server has stored at most one, with a content between these two.
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
	// over: the series has been quiet for its window. An occurrence counts, and makes it active if it is
	// within Options.MaxWindow of the latest one.
	over
	// closing: the table had no room. The series waits for its last write. An occurrence does as above.
	closing
)

// phase says what is known of the Event.
type phase uint8

const (
	// unwritten: there is no Event, as far as is known. The next write creates it.
	unwritten phase = iota
	// live: the status says what the Event contains, except for attempts.
	live
	// looking: an Event with the name exists, and it is unknown what it contains. The next write looks.
	looking
)

// Slot returns the slot of e in the schedule of its tracker.
func (e *Entry) Slot() *schedule.Slot[*Entry] { return &e.slot }

// Namespace returns the namespace of the Event.
func (e *Entry) Namespace() string { return cmp.Or(e.key.namespace.Value(), e.key.shared.elsewhere) }

// Key returns the key of the series. It never changes.
func (e *Entry) Key() series.Key { return e.key.full() }

func (e *Entry) isWarning() bool { return e.key.shared.eventType == corev1.EventTypeWarning }

// isOngoing reports whether the series recurs, as far as is known here.
func (e *Entry) isOngoing() bool { return e.life == active && e.state == series.Ongoing }

// isEmpty reports whether nothing of e is left: all there was is lost. The next occurrence begins the series.
func (e *Entry) isEmpty() bool { return e.count == 0 }

// hadEvent reports whether there has been an Event of e, which can be gone.
func (e *Entry) hadEvent() bool { return e.stored.last != 0 }

// isNew reports whether there has been no Event of e, and cannot be one.
func (e *Entry) isNew() bool { return e.phase == unwritten && e.attempts == nil && !e.hadEvent() }

// name returns the name of the Event. k is the key. To compute it takes a microsecond, and to keep it 64 bytes.
func (e *Entry) name(k *series.Key) string {
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
func (e *Entry) occur(s *step, o Occurrence) {
	at, gap := s.at, s.at-e.last
	e.waits = false
	if at < e.leftAt() && gap > s.window.Of(e.rhythm, e.last) {
		gap = 0 // another process has probably emitted it since, and must learn that this one does
		e.beatAt = min(e.beatAt, at)
	}
	if e.silent {
		e.silent, e.beatAt = false, at // the first one in this process is written at once
	}
	switch {
	case e.isEmpty():
		e.life, e.state, e.first = active, series.Singleton, s.now.UnixMicro()
		e.note, e.lastNote = s.noteFor(e, &o), ""
	case gap <= s.opts.MaxWindow:
		s.window.Observe(&e.rhythm, gap, at)
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
	e.life = max(e.life, over)
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

// differingNote returns what the annotation contains: the last note if it differs from the first one.
func (e *Entry) differingNote() string { return differing(e.note, e.lastNote) }

func differing(first, last string) string {
	if last != first {
		return last
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

// leave says that another process has written found, and may emit the series.
func (e *Entry) leave(s *step, found *series.Series) {
	s.window.Remember(&e.rhythm, found.QuietWindow(), s.at)
	heartbeat := cmp.Or(found.Heartbeat, series.DefaultHeartbeat)
	if e.left = 0; found.State == series.Ongoing && heartbeat > time.Second { // see write
		last := s.offsetOf(found.Last.Add(heartbeat + found.QuietWindow()))
		e.left = int32(min(max(last.Seconds()+1, 0), math.MaxInt32))
	}
}

// leftAt returns when no other process emits the series any more, as far as is known.
func (e *Entry) leftAt() time.Duration {
	if e.left == 0 {
		return -series.MaxDuration
	}
	return time.Duration(e.left) * time.Second
}

// tenths returns a time in tenths of a second. Differences of less than three years are right.
func tenths(at time.Duration) int32 { return int32(at / (100 * time.Millisecond)) }
