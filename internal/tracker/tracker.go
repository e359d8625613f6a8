package tracker

import (
	"cmp"
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// Tracker holds the series of one recorder: a lock around a table. Make one with [New]. All methods
// can be called concurrently. Time follows the monotonic reading of the times that are passed, if
// they have one, so a wall clock that is set does not change when a series ends.
type Tracker struct {
	mu sync.Mutex // guards table and locks
	table
	locks uint64 // see Locks
}

func (t *Tracker) lock() {
	t.mu.Lock()
	t.locks++
}

// Locks returns how often the lock has been taken, for tests.
func (t *Tracker) Locks() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.locks
}

// New returns an empty tracker. now is the present time.
func New(opts Options, now time.Time) *Tracker {
	t := &Tracker{}
	t.opts = opts.WithDefaults()
	t.window = heartbeat.Window{Min: t.opts.FinishAfter, Max: t.opts.MaxWindow}
	// A whole microsecond, the precision of an Event. Truncate would drop the monotonic reading.
	t.epoch = now.Add(-time.Duration(now.Nanosecond() % int(time.Microsecond)))
	if t.gap = t.opts.FinishAfter; t.opts.MaxWindow > t.gap {
		t.gap = t.gap / 21 * 10 // Observe of the window ignores shorter ones
	}
	seed := cmp.Or(opts.Seed, rand.Uint64())
	t.mark = int64(seed % uint64(markRange))
	t.random = rand.New(rand.NewPCG(seed, 0))
	t.seed = maphash.MakeSeed()
	t.entries = make(map[uint64]*Entry)
	t.words = make(map[words]*words)
	t.sched = schedule.New[*Entry](t.opts.Workers, t.opts.EventTTL, opts.Jitter)
	t.failedAt = schedule.Never
	t.flushes = make(flushes)
	t.known = make(map[string]knowledge)
	t.lost = make(map[DropReason]uint64)
	t.tallies = tallies{limit: maxTallies, rows: make(map[TallyKey]*Tally)}
	return t
}

// Epoch returns the time from which the tracker counts. It never changes.
func (t *Tracker) Epoch() time.Time { return t.epoch }

// Count counts an occurrence of a series that is Ongoing: the hot path. It allocates nothing. at
// is the time since [Tracker.Epoch], which takes half as long to read as a time.Time. If counted is
// false, the caller calls [Tracker.Observe]. If wantNote is true, it passes the note to
// [Tracker.Describe].
func (t *Tracker) Count(k *series.Key, at time.Duration) (e *Entry, counted, wantNote bool) {
	hash := hashOf(t.seed, k)
	t.lock()
	defer t.mu.Unlock()
	e = t.find(hash, k)
	if e == nil && k.Note != "" {
		rest := combined(k)
		e = t.find(hash, &rest)
	}
	// Only an occurrence that changes nothing but the count counts here.
	if e == nil || !e.isOngoing() || e.silent || at-e.last >= t.gap || e.waits || e.isFresh(at) || t.sealed != "" {
		return nil, false, false
	}
	e.add(1)
	e.last = max(e.last, at) // concurrent callers can arrive with their times out of order
	e.key.shared.row.Occurrences++
	return e, true, t.takesNote(e, at)
}

// Describe passes the note and the annotations of the latest occurrence to a series, whose next
// write carries them.
func (t *Tracker) Describe(e *Entry, o Occurrence, now time.Time) {
	t.lock()
	defer t.mu.Unlock()
	e.describe(o, t.offset(now))
}

// Observe records an occurrence of any key, and evicts a series if the tracker is full. If k has a
// note and too many series of its tuple do (Occurrence.DistinctNotes), the occurrence belongs to a
// series that the rest of the tuple shares.
func (t *Tracker) Observe(k *series.Key, o Occurrence, now time.Time) []Drop {
	hash := hashOf(t.seed, k)
	t.lock()
	defer t.mu.Unlock()
	if t.sealed != "" {
		t.reject(k, o, t.sealed)
	} else {
		own := t.under(hash, k, o.DistinctNotes)
		t.observe(hash, &own, o, now)
	}
	return t.dropped()
}

// Single returns the series that one occurrence is by itself. It records nothing.
func (t *Tracker) Single(k *series.Key, o Occurrence, now time.Time) series.Series {
	return series.Series{
		Key: *k, Instance: o.Instance, Namespace: t.namespace(k), Name: k.Name(0),
		Note: o.Note, Annotations: o.Annotations, First: now, Last: now, Count: 1,
	}
}

// Next handles what is due by now, and returns the write to make next: nil if there is none that can be
// made now, or mayStart is false. wake is when to call Next again if nothing else happens before: now if
// more is due, and zero if time alone changes nothing. If mayStart is false, wake is not about writes. A series
// has one write in flight at a time.
func (t *Tracker) Next(now time.Time, mayStart bool) (w *Write, drops []Drop, wake time.Time) {
	t.lock()
	defer t.mu.Unlock()
	more, at := t.advance(now), t.offset(now)
	for mayStart && w == nil {
		e, ok := t.sched.Next(at)
		if !ok {
			break
		}
		w = t.start(e, now)
	}
	until, request := t.sched.Wake(at)
	if mayStart {
		until = min(until, request)
	}
	switch {
	case more:
		wake = now
	case until < schedule.Never:
		wake = now.Add(until - at)
	}
	return w, t.dropped(), wake
}

// Apply interprets the response to a write.
func (t *Tracker) Apply(w *Write, r Response, now time.Time) []Drop {
	t.lock()
	defer t.mu.Unlock()
	at := t.offset(now)
	t.hear(w, &r, at)
	if w.entry.class == classNone {
		t.sched.Done(w.entry, schedule.Answer{Outcome: r.Outcome, Pause: r.Pause}, at)
		return nil
	}
	t.respond(w.entry, w, &r, now)
	return t.dropped()
}

// inParts calls do with every entry, and locks for a part of them at a time.
func (t *Tracker) inParts(do func(*Entry)) {
	t.lock()
	all := t.all()
	t.mu.Unlock()
	slices.Reverse(all) // to remove the last item of a queue takes no time
	for entries := range slices.Chunk(all, batch) {
		t.lock()
		for _, e := range entries {
			if e.class != classNone { // it has been forgotten since
				do(e)
			}
		}
		t.mu.Unlock()
	}
}

// Hurry is for a shutdown: failed writes are retried soon, and what the server denies is dropped.
func (t *Tracker) Hurry(now time.Time) {
	t.lock()
	defer t.mu.Unlock()
	t.hurried = true
	t.sched.Hurry(t.offset(now))
}

// Seal drops each occurrence from now on for the given reason. The series can still be written.
func (t *Tracker) Seal(reason DropReason) {
	t.lock()
	defer t.mu.Unlock()
	t.sealed = reason
}

// Clear forgets every series. What the server does not know is lost for the given reason.
func (t *Tracker) Clear(reason DropReason, now time.Time) (drops []Drop) {
	t.inParts(func(e *Entry) {
		t.drop(e, reason, now)
		drops = append(drops, t.dropped()...)
	})
	return drops
}

// Reject drops an occurrence of k for a reason of the caller, who does not pass it to Observe.
func (t *Tracker) Reject(k *series.Key, o Occurrence, reason DropReason) []Drop {
	t.lock()
	defer t.mu.Unlock()
	t.reject(k, o, reason)
	return t.dropped()
}

// Tallies returns the occurrences and the Ongoing series by controller, type, and reason. The first
// combinations have rows of their own. limited reports whether others have none.
func (t *Tracker) Tallies() (rows []Tally, limited bool) {
	t.lock()
	defer t.mu.Unlock()
	for _, r := range t.tallies.rows {
		rows = append(rows, *r)
	}
	return rows, t.tallies.own < len(rows)
}

// MaxShown is the number of namespaces, or of log lines, that somebody reads at once.
const MaxShown = 10

// Stats are numbers of a [Tracker] at one time. Package events documents them.
type Stats struct {
	Occurrences         uint64 // that arrived, including dropped ones
	Singletons, Ongoing int    // series that can recur at any time
	Ended               int    // series that are over
	Closing             int    // series that wait for their last write
	Capacity            int    // limit of Singletons, Ongoing, and Ended together, and of Closing
	Adopted             uint64 // series that continued in an Event found by its name
	Dropped             map[DropReason]uint64

	Waiting     int           // series with something to write
	Hopeful     int           // zero if all of these are retries, and no namespace is paused
	LongestWait time.Duration // of the first of these
	// Sick are namespaces in which the server fails, denies, slows, or pauses requests that wait: those
	// that have waited longest first, at most MaxShown.
	Sick []schedule.Namespace
}

// Stats returns the current numbers.
func (t *Tracker) Stats(now time.Time) Stats {
	at := t.offset(now)
	t.lock()
	defer t.mu.Unlock()
	s := Stats{
		Singletons: len(t.lists[classNormal]) + len(t.lists[classWarning]) - t.ongoing,
		Ongoing:    t.ongoing,
		Ended:      len(t.lists[classOver]),
		Closing:    len(t.lists[classClosingNormal]) + len(t.lists[classClosingWarning]) + len(t.lists[classInFlight]),
		Capacity:   t.opts.Capacity,
		Adopted:    t.adopted,
		Dropped:    maps.Clone(t.lost),
		Sick:       t.sched.Sick(MaxShown, at),
	}
	for _, r := range t.tallies.rows {
		s.Occurrences += r.Occurrences
	}
	pending, hopeful, since := t.sched.Backlog(at)
	s.Waiting, s.Hopeful, s.LongestWait = pending, hopeful, at-since
	return s
}
