package tracker

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventseries/eventseries/series"
	corev1 "k8s.io/api/core/v1"
)

// shardCount is a power of two. Hot loops on different keys meet in a shard with
// a probability of one in this many.
const shardCount = 64

// Table holds the series of one recorder: which there are, how often each has
// occurred, and what of it the server knows. It starts no goroutine, reads no
// clock and calls nobody; whoever uses it brings the time and is told what is to
// be written. Make one with NewTable.
//
// All methods may be called concurrently. Time goes by the monotonic reading of
// the times that are given, where they have one, so a wall clock that is set
// neither ends a series nor keeps one.
type Table struct {
	opts  Options
	seed  maphash.Seed
	epoch time.Time

	// mu guards all that changes when a series begins, ends or is written. It is
	// taken before the lock of a shard, never after. Counting an occurrence of a
	// running series takes no lock.
	//
	// Invariants, with mu held:
	//   - an entry is in lists[p] if and only if placeOf says p, and e.place is p
	//   - active + closing is the number of entries that are not done
	//   - an entry is in its shard if and only if it is neither detached nor done
	//   - beats has the place of each entry whose beat is not zero, and no other
	//   - the tally of an entry is open if and only if the entry is Ongoing and not
	//     detached, and its shard is not sealed; one that is closed has counted nothing
	mu       sync.Mutex
	lists    [places]idleList
	detached index // the entries that are detached and not done
	closed   *closedNames
	words    vocabulary // of the entries that are not done
	beats    *calendar
	adopted  atomic.Uint64
	active   atomic.Int64
	closing  atomic.Int64

	shards [shardCount]shard
}

type shard struct {
	mu      sync.Mutex
	entries index
	sealed  DropReason // why no more occurrences are taken; empty while they are

	// Each occurrence changes this. It is in a cache line of its own, so that
	// those who search entries keep that which they need.
	_     [cacheLine]byte
	taken atomic.Uint64 // occurrences that came in
	_     [cacheLine]byte
}

const cacheLine = 64

// NewTable returns an empty table. now is the present; times before it can be
// given all the same. Options that Validate refuses lead to a table without use.
func NewTable(opts Options, now time.Time) *Table {
	t := &Table{opts: opts.withDefaults(), seed: maphash.MakeSeed(), words: make(vocabulary)}
	// A whole microsecond, as a tally leaves out what is less. Truncate would take
	// the monotonic reading away.
	t.epoch = now.Add(-time.Duration(now.Nanosecond() % int(time.Microsecond)))
	t.closed = newClosedNames(t.opts.Capacity)
	t.beats = newCalendar(t.opts.Heartbeat)
	return t
}

// Len returns the number of series that take occurrences, and of those that have
// ended and wait for their last write. It is cheap.
func (t *Table) Len() (active, closing int) {
	return int(t.active.Load()), int(t.closing.Load())
}

// ByState returns the number of series that take occurrences, by whether they have
// occurred once or go on, and of those that have ended and wait for their last
// write. Other than Len it waits for the table.
func (t *Table) ByState() (singletons, ongoing, closing int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ongoing = len(t.lists[placeOngoing])
	active, closing := t.Len()
	return active - ongoing, ongoing, closing
}

// Capacity returns how many series can take occurrences at a time.
func (t *Table) Capacity() int { return t.opts.Capacity }

// Adopted returns how many series went on in the Event of an earlier process that
// stood under their name.
func (t *Table) Adopted() uint64 { return t.adopted.Load() }

// Occurrences returns how many occurrences came in, those included that were
// dropped for want of room or because the table was sealed.
func (t *Table) Occurrences() uint64 {
	var n uint64
	for i := range t.shards {
		n += t.shards[i].taken.Load()
	}
	return n
}

// Status returns what the deadlines of e depend on. ok is false if e is not
// tracked any more, or has ended and has no deadlines.
func (t *Table) Status(e *Entry, now time.Time) (status Status, ok bool) {
	off := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.done || e.detached {
		return Status{}, false
	}
	status = Status{
		State:      e.state,
		Last:       now.Add(e.last() - off),
		Heartbeats: int(e.beats),
		Lead:       t.beats.lead(e.beat),
		Waiting:    e.waits(),
	}
	if e.exists || e.refusal != nil {
		status.Written = now.Add(e.wroteAt - off)
	}
	return status, true
}

func (t *Table) offset(now time.Time) time.Duration { return now.Sub(t.epoch) }

func (t *Table) shard(hash uint64) *shard { return &t.shards[hash%shardCount] }

// lock locks the shard of e, which it returns, and takes over what the tally of e has
// counted.
func (t *Table) lock(e *Entry) *shard {
	s := t.shard(e.hash)
	s.mu.Lock()
	e.add(e.tally.take())
	return s
}

// open has occurrences of e counted without a lock from now on, if e is such a
// series. The shard is locked.
func (s *shard) open(e *Entry) {
	if e.state == series.Ongoing && !e.detached && s.sealed == "" {
		e.tally.open()
	}
}

func (s *shard) find(hash uint64, k *series.Key) *Entry { return s.entries.find(hash, k) }
func (s *shard) insert(e *Entry)                        { s.entries.insert(e) }
func (s *shard) remove(e *Entry)                        { s.entries.remove(e) }

// has reports whether an entry other than e has the Event of k with that name, or
// will have it. The table is locked.
func (t *Table) has(hash uint64, k *series.Key, name string, e *Entry) bool {
	s := t.shard(hash)
	s.mu.Lock()
	other := s.find(hash, k)
	s.mu.Unlock()
	if other != nil && other != e && other.name() == name {
		return true
	}
	for other := range t.detached.with(hash) {
		if other != e && other.key.is(k) && other.name() == name {
			return true
		}
	}
	return false
}

// placeOf says in which list e belongs.
func (e *Entry) placeOf() place {
	warning := e.key.eventType() == corev1.EventTypeWarning
	switch {
	case e.done:
		return nowhere
	case e.detached && e.inFlight:
		return nowhere
	case e.detached && warning:
		return placeClosingWarning
	case e.detached:
		return placeClosingNormal
	case e.state == series.Ongoing:
		return placeOngoing
	case e.exists:
		return placeWritten
	case e.inFlight || warning:
		return nowhere
	default:
		return placeUnwritten
	}
}

// file puts e where it belongs after a change. The table is locked.
func (t *Table) file(e *Entry) {
	e.urgency.Store(int32(urgencyOf(e.key.eventType(), e.news())))
	p := e.placeOf()
	if p == e.place {
		return
	}
	if e.place != nowhere {
		t.lists[e.place].remove(e)
	}
	e.place = p
	if p != nowhere {
		t.lists[p].insert(e, e.last())
	}
}
