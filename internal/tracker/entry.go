package tracker

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Entry is a series in a Table: what the table hands out and takes back. Its
// fields belong to the table; outside, an Entry is a handle that can be
// compared, queued and used as the key of a map.
//
// A key can have several entries at a time: one that takes occurrences, and
// those of earlier series which have ended but have not been written.
//
// The fields are in an order that wastes no room: with 256 bytes, an Entry is in
// whole cache lines, and counting an occurrence needs the first two of them.
type Entry struct {
	// These never change.
	key  compactKey
	hash uint64 // of key

	// Whoever counts an occurrence changes these, without any lock. They begin a cache
	// line, so that he does not take away the one with the key from others.
	tally   tally
	notedAt atomic.Int64 // when lastNote was looked at, nanoseconds since Table.epoch

	// The shard guards the fields of this block; what of them depends on the tally,
	// only Table.lock brings up to date. A change of state needs the lock of the table
	// as well, so either of the two is enough to read it.
	revision uint64 // how many changes there were
	count    int32
	state    series.State
	silent   bool // restored, and has not occurred since

	// The lock of the table guards this block.
	named   bool         // the Event has a name: its first write has begun
	wroteAs series.State // what it knows of state

	// The shard again.
	note        string
	lastNote    string
	first       int64 // wall time of the first occurrence, microseconds since 1970
	annotations map[string]string
	shared      *shared // nil unless instances share their series

	// The lock of the table guards the rest. "It" is the server.
	uniqueName    *string       // of the Event; nil if that has the base name
	wroteAt       time.Duration // when it took the latest write, or refused it
	wroteLast     int64         // the time that it was told last, or may have been; microseconds since 1970
	wrote         uint64        // what it knows of revision
	flushTo       uint64        // the revision that somebody asked it to be told
	refusal       *DropReason   // why it does not take the series; nil if it does
	meeting       *meeting      // what stands under the name that was wanted; nil mostly
	stamp         time.Duration // the order in the idle list
	pos           int32         // the index there
	place         place         // the idle list that the entry is in
	vacated       bool          // the Event that stood in the way was gone when it was looked at
	wantSuccessor bool          // the Event under the base name is to lead to this one
	base          owner         // whose that Event is; of use if this has a unique name
	wroteN        int32         // what it knows of count
	beat          booking       // when the next heartbeat is due
	beats         uint16        // heartbeats written, or refused
	exists        bool          // the Event is on the server, as far as is known
	existed       bool          // it has been there, so the next create is not the first
	inFlight      bool          // a write is under way
	detached      bool          // takes no occurrences any more; waits for its last write
	done          bool          // not tracked any more
	wantBeat      bool          // its heartbeat has come
	uniqueNames   int32         // how many unique names it has had; 0: it has the base name

	urgency atomic.Int32
	slot    int32 // see Slot
}

// shared is what an entry knows of an Event that other processes write to as well.
type shared struct {
	instance string // the reportingInstance that the Event has

	// The lock of the table guards the rest.
	version string    // the resourceVersion that the Event had, as far as is known
	tried   []attempt // the patches of that version that have failed, the latest of them
}

// attempt is a patch that has failed, and has been made all the same if it was the
// answer that was lost. Of those for the same resourceVersion, the server has made
// one at most.
type attempt struct {
	count int32
	last  int64 // microseconds since 1970
}

// maxAttempts is how many attempts are remembered. There are few: after one that
// failed comes a look.
const maxAttempts = 8

// remember remembers an attempt.
func (s *shared) remember(a attempt) {
	if len(s.tried) == maxAttempts {
		s.tried = slices.Delete(s.tried, 0, 1)
	}
	s.tried = append(s.tried, a)
}

// knows says which version the Event has now.
func (s *shared) knows(version string) {
	if s.version != version {
		s.version, s.tried = version, nil
	}
}

// instance returns the reportingInstance of the Event. The shard is locked.
func (e *Entry) instance() string {
	if e.shared != nil {
		return e.shared.instance
	}
	return e.key.shared.instance
}

// last returns when the latest occurrence was, since Table.epoch. It may be called at
// any time, under any lock.
func (e *Entry) last() time.Duration { return e.tally.last() }

// Key returns the key of the series. It never changes.
func (e *Entry) Key() series.Key { return e.key.full() }

// name returns the name of the Event. It is empty until the first write begins. The
// base name is made anew each time: it is asked for with each write, and takes a
// microsecond then, and 64 bytes if it is kept.
func (e *Entry) name() string {
	switch {
	case !e.named:
		return ""
	case e.uniqueName != nil:
		return *e.uniqueName
	default:
		return e.baseName()
	}
}

// rename gives the Event a name.
func (e *Entry) rename(name string) {
	e.named, e.uniqueName = true, nil
	if name != e.baseName() {
		unique := name
		e.uniqueName = &unique
	}
}

func (e *Entry) baseName() string {
	k := e.Key()
	return k.BaseName()
}

// Slot is room for one number that belongs to whoever keeps entries in a queue
// of deadlines, and is guarded by whatever guards that queue. It is zero at
// first.
func (e *Entry) Slot() *int32 { return &e.slot }

// Urgency says how soon the write that e waits for should be made. It may be
// called at any time, under any lock.
func (e *Entry) Urgency() Urgency { return Urgency(e.urgency.Load()) }

// occur counts an occurrence. The shard is locked.
func (e *Entry) occur(at time.Duration) {
	e.tally.occurred(at)
	e.add(1)
}

// add adds so many occurrences. The shard is locked.
func (e *Entry) add(n int) {
	if n == 0 {
		return
	}
	e.raise(int64(n))
	e.silent = false
	e.revision += uint64(n)
}

// raise raises the count, as far as the API has room for it. The shard is locked.
func (e *Entry) raise(n int64) { e.count = int32(min(int64(e.count)+n, math.MaxInt32)) }

// describe takes the note and the annotations of the latest occurrence. The
// shard is locked.
func (e *Entry) describe(o Occurrence, at time.Duration) {
	if o.Note != "" {
		e.lastNote = o.Note
		e.notedAt.Store(int64(at))
	}
	if e.lastNote == e.note {
		e.lastNote = e.note // mostly it is the same, and need not be in memory twice
	}
	if len(o.Annotations) > 0 {
		e.annotations = mergeAnnotations(e.annotations, o.Annotations)
	}
	e.revision++
}

// lost is the number of occurrences that the server does not know of.
func (e *Entry) lost() int { return int(e.count) - int(e.wroteN) }
