package tracker

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/internal/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// Entry is one series in a [Tracker]: what it should say (spec), what the server
// is known to say (status), and how far the two can be reconciled (phase). Its
// fields belong to the tracker. To others it is a handle.
//
// A key can have several entries: one that accepts occurrences, and those of
// earlier series that wait for their last write.
//
// The order of the fields wastes no room: an Entry has 256 bytes, which are whole
// cache lines, and an occurrence touches the first two of them.
type Entry struct {
	// These never change.
	key  internedKey
	hash uint64 // of key

	// An occurrence changes these without a lock. They begin a cache line, to avoid
	// false sharing with the key.
	counter counter
	notedAt atomic.Int64 // when the note was formatted last, nanoseconds since Tracker.epoch

	spec   spec
	status status
	extra  *extra // what few entries have; nil if there is nothing

	// Tracker.mu guards the rest.
	slot  heartbeat.Slot[*Entry]
	index int32         // in the list of its class
	class evictionClass // the list that it is in
	phase phase
	life  life
}

// spec is what the Event of a series should say. The lock of the shard guards it.
// Only Tracker.drain brings the fields that depend on the counter up to date. A
// change of state needs Tracker.mu as well, so either lock permits to read it.
type spec struct {
	revision    uint64 // counts the changes
	note        string
	lastNote    string
	annotations map[string]string
	first       int64 // wall time of the first occurrence, microseconds since 1970
	count       int32
	state       series.State
	silent      bool // restored, and has not occurred since
}

// status is what the server is known to say about a series, and what else is to
// be written than the spec. Tracker.mu guards it.
//
// Invariants:
//   - revision <= spec.revision, and 0 <= count <= spec.count.
//   - If revision is zero, the server knows nothing of the series.
//   - In the phases live and conflicted the Event exists: named and existed are true.
//   - beatAt is valid if the series is Ongoing and its phase is live or refused.
type status struct {
	version  uint64        // resourceVersion; zero if unknown
	revision uint64        // of the spec
	base     uint64        // resourceVersion of the Event under the base name, if baseOwner is ownerUs; zero if unknown
	at       time.Duration // of the latest write that the server accepted, or when it refused one
	beatAt   time.Duration // when the next heartbeat is due
	last     int64         // the latest time that the server knows or may know; microseconds since 1970
	count    int32
	state    series.State

	beats     uint8 // heartbeats of this process so far, limited to 255
	named     bool  // the Event has a name: its first write has begun
	existed   bool  // the Event has existed, so the next create is not the first
	beatDue   bool  // a heartbeat is to be written
	flush     bool  // someone waits for a count that the server does not know yet
	signpost  bool  // the Event under the base name is to lead here
	baseOwner owner // of the Event under the base name; matters if this one has a unique name
	vacated   bool  // the Event that had the name was gone when looked at
	promised  bool  // the Event says Options.promise
	renames   uint16
}

// extra is what few entries have. Tracker.mu guards it.
type extra struct {
	uniqueName string                // of the Event; empty if it has the base name
	instance   unique.Handle[string] // reportingInstance of the Event; zero value: that of the key
	attempts   []attempt             // writes whose outcome is unknown: the oldest, and the latest
	claim      claim                 // valid in the phases claiming and conflicted
	refusal    DropReason            // valid in the phase refused
	failures   int                   // requests that have failed in a row
	notBefore  time.Duration         // no request before this time, because of failures; zero: any time
}

// attempt is what a write said whose outcome is unknown.
type attempt struct {
	count    int32
	last     int64  // microseconds since 1970
	revision uint64 // of the spec
}

// maxAttempts bounds how many attempts an entry remembers.
const maxAttempts = 32

// life says whether an entry accepts occurrences. It only ever grows.
type life uint8

const (
	// accepting: occurrences of the key belong to this entry.
	accepting life = iota
	// closing: the series has ended, and waits for its last write.
	closing
	// forgotten: the tracker holds the entry no longer.
	forgotten
)

// more returns the extra of e, which it makes if there is none.
func (e *Entry) more() *extra {
	if e.extra == nil {
		e.extra = &extra{}
	}
	return e.extra
}

// Slot returns the place of e in the schedule of its tracker.
func (e *Entry) Slot() *heartbeat.Slot[*Entry] { return &e.slot }

// Gate returns what the next request for e must pass. Tracker.mu must be held.
func (e *Entry) Gate() heartbeat.Gate {
	g := heartbeat.Gate{Namespace: e.key.namespace.Value(), Verb: "patch"}
	if kind := e.need(); kind == Create || kind == Recreate {
		g.Verb = "create"
	}
	return g
}

// Key returns the key of the series. It never changes.
func (e *Entry) Key() series.Key { return e.key.full() }

func (e *Entry) isWarning() bool { return e.key.eventType() == corev1.EventTypeWarning }

// last returns when the latest occurrence was, since Tracker.epoch. It needs no
// lock.
func (e *Entry) last() time.Duration { return e.counter.last() }

// lost returns the number of occurrences that the server does not know of. The
// shard is locked.
func (e *Entry) lost() int { return int(e.spec.count) - int(e.status.count) }

// exists reports whether the Event exists, as far as is known.
func (e *Entry) exists() bool { return e.phase == live || e.phase == conflicted }

// occur counts an occurrence. The shard is locked.
func (e *Entry) occur(at time.Duration) {
	e.counter.occurred(at)
	e.add(1)
}

// add counts n occurrences. The shard is locked.
func (e *Entry) add(n int) {
	if n == 0 {
		return
	}
	e.raise(int64(n))
	e.spec.silent = false
	e.spec.revision += uint64(n)
}

// raise increases the count, up to what the API can hold. The shard is locked.
func (e *Entry) raise(n int64) {
	e.spec.count = int32(min(int64(e.spec.count)+n, math.MaxInt32))
}

// describe takes the note and the annotations of the latest occurrence. The shard
// is locked.
func (e *Entry) describe(o Occurrence, at time.Duration) {
	if o.Note != "" {
		e.spec.lastNote = o.Note
		e.notedAt.Store(int64(at))
	}
	if e.spec.lastNote == e.spec.note {
		e.spec.lastNote = e.spec.note // share the memory
	}
	if len(o.Annotations) > 0 {
		e.spec.annotations = mergeAnnotations(e.spec.annotations, o.Annotations)
	}
	e.spec.revision++
}

// instance returns the reportingInstance of the Event.
func (e *Entry) instance() string {
	if e.extra != nil && e.extra.instance != (unique.Handle[string]{}) {
		return e.extra.instance.Value()
	}
	return e.key.shared.reporter
}

// setInstance says which reportingInstance the Event has.
func (e *Entry) setInstance(instance string) {
	if instance != e.instance() {
		e.more().instance = unique.Make(instance)
	}
}

// name returns the name of the Event, which is empty until its first write begins.
// The base name is computed each time: that takes a microsecond, once for each
// write, and to keep it takes 64 bytes.
func (e *Entry) name() string {
	switch {
	case !e.status.named:
		return ""
	case e.extra != nil && e.extra.uniqueName != "":
		return e.extra.uniqueName
	default:
		return e.baseName()
	}
}

func (e *Entry) baseName() string {
	k := e.Key()
	return k.BaseName()
}

// rename gives the Event a name.
func (e *Entry) rename(name string) {
	e.status.named = true
	switch {
	case name != e.baseName():
		e.more().uniqueName = name
	case e.extra != nil:
		e.extra.uniqueName = ""
	}
}

// hasUniqueName reports whether the name differs from the base name.
func (e *Entry) hasUniqueName() bool { return e.extra != nil && e.extra.uniqueName != "" }

// hasBaseName reports whether e has a name, and it is the base name.
func (e *Entry) hasBaseName() bool { return e.status.named && !e.hasUniqueName() }

// hasAttempts reports whether there are writes whose outcome is unknown.
func (e *Entry) hasAttempts() bool { return e.extra != nil && len(e.extra.attempts) > 0 }

// attempted returns the first write whose outcome is unknown and that has said what
// found says. ok is false if there is none.
func (e *Entry) attempted(found *series.Series) (a attempt, ok bool) {
	if e.extra == nil {
		return attempt{}, false
	}
	i := slices.IndexFunc(e.extra.attempts, func(a attempt) bool {
		return a.count == found.Count && a.last == found.Last.UnixMicro()
	})
	if i < 0 {
		return attempt{}, false
	}
	return e.extra.attempts[i], true
}

// smallestAttempt returns the smallest count of the writes whose outcome is unknown.
// There must be one.
func (e *Entry) smallestAttempt() int32 {
	return slices.MinFunc(e.extra.attempts, func(a, b attempt) int { return cmp.Compare(a.count, b.count) }).count
}
