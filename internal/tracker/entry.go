package tracker

import (
	"cmp"
	"maps"
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
// The order of the fields wastes no room: an Entry has 192 bytes, which are whole
// cache lines. An occurrence reads the first one, and changes the second one. What few
// entries have is in extra, in spec.latest, and in key.rare.
type Entry struct {
	key   internedKey // never changes
	extra *extra      // nil if there is nothing

	counter counter // an occurrence changes it without a lock
	spec    spec
	status  status

	// Tracker.mu guards the rest.
	slot  heartbeat.Slot[*Entry]
	index int32         // in the list of its class
	class evictionClass // the list that it is in
	phase phase
	life  life

	managed bool // series.IsManaged
}

// spec is what the Event of a series should say. The lock of the shard guards it.
// Only Tracker.drain brings the fields that depend on the counter up to date. A
// change of state needs Tracker.mu as well, so either lock permits to read it.
type spec struct {
	note     string
	latest   *latest // nil if there is nothing
	first    int64   // wall time of the first occurrence, microseconds since 1970
	count    int32
	revision revision
	notedAt  atomic.Int32 // when the note was formatted last, see tenths; an occurrence changes it without a lock
	state    series.State
	silent   bool // restored, and has not occurred since

	renoted     bool // the Event may have another last note
	reannotated bool // the Event may lack some of the annotations
}

// latest is what the latest occurrences have said besides the first one.
type latest struct {
	note        string // the latest that was formatted; empty if it was that of the first occurrence
	annotations map[string]string
}

// lastNote returns the latest note that was formatted. It is empty if none differed from
// the first one.
func (s *spec) lastNote() string {
	if s.latest == nil {
		return ""
	}
	return s.latest.note
}

func (s *spec) annotations() map[string]string {
	if s.latest == nil {
		return nil
	}
	return s.latest.annotations
}

func (s *spec) setLastNote(note string) {
	if note == s.note {
		note = s.note // share the memory
	}
	if s.latest != nil || note != "" {
		s.more().note = note
	}
}

func (s *spec) setAnnotations(annotations map[string]string) {
	if s.latest != nil || len(annotations) > 0 {
		s.more().annotations = annotations
	}
}

// compare says which of its last note and annotations the Event found does not have. If
// no last note is known, it is that of found.
func (s *spec) compare(found *series.Series) {
	if s.lastNote() == "" {
		s.setLastNote(found.LastNote)
	}
	s.renoted = s.differingNote() != found.LastNote
	s.reannotated = false
	for k, v := range s.annotations() {
		if said, ok := found.Annotations[k]; !ok || said != v {
			s.reannotated = true
		}
	}
}

// differingNote returns the last note if it differs from the first one, which is what
// the annotation says.
func (s *spec) differingNote() string {
	if s.lastNote() == s.note {
		return ""
	}
	return s.lastNote()
}

// more returns the latest of s, which it makes if there is none.
func (s *spec) more() *latest {
	if s.latest == nil {
		s.latest = &latest{}
	}
	return s.latest
}

// revision counts the changes of a spec. It wraps around. Zero stands for none.
type revision uint32

func (r revision) next() revision { return max(r+1, 1) }

// covers reports whether r is other or a later one.
func (r revision) covers(other revision) bool { return r != 0 && int32(r-other) >= 0 }

// tenths returns a time since Tracker.epoch in tenths of a second. Differences of less
// than three years are right.
func tenths(at time.Duration) int32 { return int32(at / (100 * time.Millisecond)) }

// status is what the server is known to say about a series, and what else is to
// be written than the spec. Tracker.mu guards it.
//
// Invariants:
//   - spec.revision covers revision, and 0 <= count <= spec.count.
//   - If revision is zero, the server knows nothing of the series.
//   - In the phases live and conflicted the Event exists: named and existed are true.
//   - beatAt is valid if the series is Ongoing and its phase is live or refused.
type status struct {
	version  uint64        // resourceVersion; zero if unknown
	at       time.Duration // of the latest write that the server accepted, or when it refused one
	beatAt   time.Duration // when the next heartbeat is due
	last     int64         // the latest time that the server knows or may know; microseconds since 1970
	count    int32
	revision revision // of the spec
	state    series.State

	beats    uint8 // heartbeats of this process so far, limited to 255
	named    bool  // the Event has a name: its first write has begun
	existed  bool  // the Event has existed, so the next create is not the first
	beatDue  bool  // a heartbeat is to be written
	flush    bool  // someone waits for a count that the server does not know yet
	signpost bool  // the Event under the base name is to lead here
	promised bool  // the Event says Options.promise
}

// extra is what few entries have. Tracker.mu guards it.
type extra struct {
	uniqueName string                // of the Event; empty if it has the base name
	renames    uint16                // how many unique names there were so far
	baseOwner  owner                 // of the Event under the base name; matters if this one has a unique name
	vacated    bool                  // the Event that had the name was gone when looked at
	base       uint64                // resourceVersion of the Event under the base name, if baseOwner is ownerUs; zero if unknown
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
	last     int64    // microseconds since 1970
	revision revision // of the spec
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
	g := heartbeat.Gate{Namespace: e.key.namespace.value, Verb: "patch"}
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
	e.change()
}

// change says that the spec has changed. The shard is locked.
func (e *Entry) change() { e.spec.revision = e.spec.revision.next() }

// raise increases the count, up to what the API can hold. The shard is locked.
func (e *Entry) raise(n int64) {
	e.spec.count = int32(min(int64(e.spec.count)+n, math.MaxInt32))
}

// describe takes the note and the annotations of the latest occurrence. The shard
// is locked.
func (e *Entry) describe(o Occurrence, at time.Duration) {
	before := e.spec.differingNote()
	if o.Note != "" {
		if o.Note != e.spec.note || e.spec.lastNote() != "" {
			e.spec.setLastNote(o.Note)
		}
		e.spec.notedAt.Store(tenths(at))
	}
	e.spec.renoted = e.spec.renoted || e.spec.differingNote() != before
	if len(o.Annotations) > 0 {
		merged := mergeAnnotations(e.spec.annotations(), o.Annotations)
		e.spec.reannotated = e.spec.reannotated || !maps.Equal(merged, e.spec.annotations())
		e.spec.setAnnotations(merged)
	}
	e.change()
}

// instance returns the reportingInstance of the Event.
func (e *Entry) instance() string {
	if e.extra != nil && e.extra.instance != (unique.Handle[string]{}) {
		return e.extra.instance.Value()
	}
	return e.key.shared.value.reporter
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

// baseOwner returns whose the Event under the base name is.
func (e *Entry) baseOwner() owner {
	if e.extra == nil {
		return ownerUnknown
	}
	return e.extra.baseOwner
}

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
