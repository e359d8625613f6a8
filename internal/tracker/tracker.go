package tracker

import (
	"hash/maphash"
	"math/bits"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventseries/eventseries/internal/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// shardCount is a power of two. Two keys share a shard with a probability of one
// in this many.
const shardCount = 64

// Tracker holds the active series of one recorder. Make one with [New].
//
// All methods can be called concurrently. Time follows the monotonic reading of
// the times that are passed, if they have one, so a wall clock that is set neither
// ends a series nor keeps one.
type Tracker struct {
	opts  Options
	seed  maphash.Seed
	epoch time.Time
	mark  int64 // see marked

	// mu guards all that changes when a series begins, ends, or is written. It is
	// taken before the lock of a shard, never after. To count an occurrence of an
	// ongoing series takes neither.
	//
	// Invariants, with mu held:
	//   - An entry is in lists[p] if and only if evictionClass says p, and its class
	//     is p.
	//   - accepting + closing is the number of entries that are not forgotten.
	//   - An entry is in its shard if and only if it accepts occurrences.
	//   - The counter of an entry is open if and only if the entry is Ongoing and
	//     accepts occurrences, and its shard is not sealed. A closed counter holds
	//     no occurrences.
	//   - Entries that are not forgotten wait, are ready, or are in flight in sched;
	//     entries that are forgotten can be in flight.
	mu         sync.Mutex
	sched      *heartbeat.Schedule[*Entry]
	lists      [evictionClasses]heartbeat.Queue[*Entry] // the longest idle first
	closed     index                                    // the entries that are closing
	tombstones *tombstones
	words      vocabulary // of the entries that are not forgotten
	flushes    map[*Flush]struct{}
	hurried    bool // a shutdown has begun
	adopted    atomic.Uint64
	accepting  atomic.Int64
	closing    atomic.Int64

	shards [shardCount]shard
}

type shard struct {
	mu      sync.Mutex
	entries index
	sealed  DropReason // why the shard accepts no occurrences; empty while it does

	// Each occurrence changes taken. It has a cache line of its own, so that
	// those who look up entries keep the line that they read.
	_     [cacheLine]byte
	taken atomic.Uint64 // occurrences that arrived
	_     [cacheLine]byte
}

const cacheLine = 64

// New returns an empty tracker. now is the present time.
func New(opts Options, now time.Time) *Tracker {
	t := &Tracker{
		opts:    opts.WithDefaults(),
		seed:    maphash.MakeSeed(),
		mark:    rand.Int64N(markRange),
		words:   newVocabulary(),
		sched:   heartbeat.NewSchedule[*Entry](opts.Jitter),
		flushes: make(map[*Flush]struct{}),
	}
	// A whole microsecond, because a counter stores no less. Truncate would drop the
	// monotonic reading.
	t.epoch = now.Add(-time.Duration(now.Nanosecond() % int(time.Microsecond)))
	t.tombstones = newTombstones(t.opts.Capacity, t.untilExpired())
	for class := range t.lists {
		t.lists[class] = heartbeat.NewQueue(func(e *Entry) *int32 { return &e.index })
	}
	return t
}

// Stats are numbers of a [Tracker] at one time. Package events documents them.
type Stats struct {
	Occurrences         uint64 // that arrived, including dropped ones
	Singletons, Ongoing int    // series that accept occurrences
	Closing             int    // series that wait for their last write
	Capacity            int    // limit of Singletons and Ongoing together, and of Closing
	Adopted             uint64 // series that continued in an Event found by its name

	Ready       int           // series whose write can be sent
	Waiting     int           // series with something to write: ready, in flight, or retried
	LongestWait time.Duration // of the first of these

	Paused      bool // the server wants no requests, until PausedUntil
	PausedUntil time.Time
	PausedTotal time.Duration // so far
}

// Stats returns the current numbers.
func (t *Tracker) Stats(now time.Time) Stats {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Stats{Capacity: t.opts.Capacity, Adopted: t.adopted.Load(), Closing: int(t.closing.Load()), Ongoing: t.ongoing()}
	s.Singletons = int(t.accepting.Load()) - s.Ongoing
	for i := range t.shards {
		s.Occurrences += t.shards[i].taken.Load()
	}
	var since, until time.Duration
	s.Ready, s.Waiting, since = t.sched.Backlog()
	if s.Waiting > 0 {
		s.LongestWait = at - since
	}
	until, s.PausedTotal, s.Paused = t.sched.Pause(at)
	if s.Paused {
		s.PausedUntil = now.Add(until - at)
	}
	return s
}

// Epoch returns the time from which the tracker reckons. It never changes.
func (t *Tracker) Epoch() time.Time { return t.epoch }

func (t *Tracker) offset(now time.Time) time.Duration { return now.Sub(t.epoch) }

func (t *Tracker) shard(hash uint64) *shard { return &t.shards[hash%shardCount] }

// drain locks the shard of e, moves what the counter of e holds to its spec, and
// returns the shard. The caller unlocks it.
func (t *Tracker) drain(e *Entry) *shard {
	s := t.shard(t.hashOf(e))
	s.mu.Lock()
	e.add(e.counter.take())
	return s
}

// open lets occurrences of e be counted without a lock, if e is Ongoing and
// accepts them. The shard is locked.
func (s *shard) open(e *Entry) {
	if e.spec.state == series.Ongoing && e.life == accepting && s.sealed == "" {
		e.counter.open()
	}
}

// tends reports whether an entry other than e has the Event of k with that name,
// or will have it. Tracker.mu is held.
func (t *Tracker) tends(hash uint64, k *series.Key, name string, e *Entry) bool {
	return t.another(hash, k, e, func(other *Entry) bool { return other.name() == name })
}

// another reports whether an entry of k other than e matches. Tracker.mu is held.
func (t *Tracker) another(hash uint64, k *series.Key, e *Entry, match func(*Entry) bool) bool {
	s := t.shard(hash)
	s.mu.Lock()
	other := s.entries.find(hash, k)
	s.mu.Unlock()
	if other != nil && other != e && match(other) {
		return true
	}
	for other := range t.closed.with(hash) {
		if other != e && other.key.is(k) && match(other) {
			return true
		}
	}
	return false
}

// fastHash returns the hash by which a key is found. Equal keys have the same under the
// same seed, and so have keys that differ in nothing but their notes, which are found
// together.
//
// Fields of which there are few combinations for one object are left out: the kinds of
// the objects, the namespace of an object with a UID, the type of the event, the
// controller, and the instance. Each controller that reports the same about one object
// costs 15 ns.
//
// It hashes each string by itself, because a processor does several at a time.
// maphash.Comparable of the whole chains them, and takes longer.
func fastHash(seed maphash.Seed, k *series.Key) uint64 {
	h := hashReference(0, seed, &k.Regarding)
	h = mix(h, seed, k.Regarding.FieldPath)
	h = hashReference(h, seed, &k.Related)
	h = mix(h, seed, k.Action)
	return mix(h, seed, k.Reason)
}

func hashReference(h uint64, seed maphash.Seed, r *series.Reference) uint64 {
	if r.UID == "" {
		h = mix(h, seed, r.Namespace)
	}
	h = mix(h, seed, r.Name)
	return mix(h, seed, string(r.UID))
}

// hashOf returns the fastHash of the key of e. It is computed when it is needed, which is
// for each write, to save eight bytes for each entry.
func (t *Tracker) hashOf(e *Entry) uint64 {
	k := e.Key()
	return fastHash(t.seed, &k)
}

// nameHash returns a hash of the whole key, by which the tombstones know it. It differs
// if the names of the Events do.
func (t *Tracker) nameHash(k *series.Key) uint64 {
	h := fastHash(t.seed, k)
	h = mix(h, t.seed, k.Regarding.APIVersion)
	h = mix(h, t.seed, k.Regarding.Kind)
	h = mix(h, t.seed, k.Regarding.Namespace)
	h = mix(h, t.seed, k.Related.APIVersion)
	h = mix(h, t.seed, k.Related.Kind)
	h = mix(h, t.seed, k.Related.Namespace)
	h = mix(h, t.seed, k.Related.FieldPath)
	h = mix(h, t.seed, k.Type)
	h = mix(h, t.seed, k.ReportingController)
	h = mix(h, t.seed, k.ReportingInstance)
	return mix(h, t.seed, k.Note)
}

// nameHashOf returns the nameHash of the key of e.
func (t *Tracker) nameHashOf(e *Entry) uint64 {
	k := e.Key()
	return t.nameHash(&k)
}

// mix adds the hash of s to h, the hash of the fields before. The factor, 2^64
// divided by the golden ratio, makes the position of a field matter.
func mix(h uint64, seed maphash.Seed, s string) uint64 {
	const factor = 0x9e3779b97f4a7c15
	if s != "" {
		h ^= maphash.String(seed, s)
	}
	return h * factor
}

// fraction returns a number from 0 to 1 that follows from hash.
func fraction(hash uint64) float64 { return float64(bits.Reverse64(hash)>>11) / (1 << 53) }
