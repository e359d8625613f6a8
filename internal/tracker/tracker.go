package tracker

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// Tracker holds the active series of one recorder: a lock around a table. Make one with
// [New].
//
// All methods can be called concurrently. Time follows the monotonic reading of
// the times that are passed, if they have one, so a wall clock that is set does not change
// when a series ends.
type Tracker struct {
	mu sync.Mutex // guards table, except for what Count reads
	table
}

// New returns an empty tracker. now is the present time.
func New(opts Options, now time.Time) *Tracker {
	t := &Tracker{}
	t.opts = opts.WithDefaults()
	// A whole microsecond, because a counter stores no less. Truncate would drop the
	// monotonic reading.
	t.epoch = now.Add(-time.Duration(now.Nanosecond() % int(time.Microsecond)))
	t.mark = rand.Int64N(markRange)
	if t.opts.Seed != 0 {
		t.mark = int64(t.opts.Seed % uint64(markRange))
	}
	t.gap = min(t.opts.FinishAfter, t.opts.window().Slow())
	t.seed = newSeed(t.opts.Seed)
	t.words = newVocabulary()
	t.sched = heartbeat.NewSchedule[*Entry](opts.Jitter)
	t.backoff, t.backoffDenied = t.sched.Backoff, t.sched.BackoffDenied
	t.flushes = make(flushes)
	t.tallies.init(t.opts.Tallies)
	t.tombstones = newTombstones(t.opts.Capacity, t.untilExpired())
	for class := range t.lists {
		t.lists[class] = heartbeat.NewQueue(func(e *Entry) *int32 { return &e.index })
	}
	return t
}

// Epoch returns the time from which the tracker counts. It never changes.
func (t *Tracker) Epoch() time.Time { return t.epoch }

// noteInterval is how often the note of an ongoing series is formatted. Formatting
// would otherwise be the largest cost of an occurrence. With more than 10,000 series,
// each has its turn less often, so that all of them format maxNotes per second.
const (
	noteInterval = 10 * time.Second
	maxNotes     = 1000
)

// Count counts an occurrence of a series that is Ongoing: the hot path. It allocates
// nothing and takes no lock, unless k has a note. at is the time since [Tracker.Epoch],
// which takes half as long to read as a time.Time.
//
// If counted is false, the caller calls [Tracker.Observe]. If wantNote is true, it
// passes the note to [Tracker.Describe].
func (t *Tracker) Count(k *series.Key, at time.Duration) (e *Entry, counted, wantNote bool) {
	hash := fastHash(t.seed, k)
	s := t.shard(hash)
	if k.Note == "" {
		e = s.entries.find(hash, k)
	} else {
		e = s.findWithNote(hash, k)
	}
	if e == nil {
		return nil, false, false
	}
	n, counted := e.counter.count(at, t.gap)
	if !counted {
		return nil, false, false
	}
	s.taken.Add(1)
	if n == counterHalf {
		t.mu.Lock()
		e.drain()
		t.mu.Unlock()
	}
	if noted, now := e.spec.notedAt.Load(), tenths(at); now-noted >= max(tenths(noteInterval), int32(t.accepting.Load()/(maxNotes/10))) {
		// One of several callers gets to format the note.
		wantNote = e.spec.notedAt.CompareAndSwap(noted, now)
	}
	return e, true, wantNote
}

// Describe passes the note and the annotations of the latest occurrence to a
// series. Its next write carries them.
func (t *Tracker) Describe(e *Entry, o Occurrence, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.drain()
	e.describe(o, t.offset(now))
}

// Observe records an occurrence of any key.
//
// Within MaxWindow of the latest occurrence it belongs to the same series, which becomes
// Ongoing, also if it was over. Otherwise Observe begins a new one, for which it evicts
// another if the tracker is full.
//
// If k has a note and too many series of its tuple do (Occurrence.DistinctNotes),
// the occurrence belongs to a series that the rest of the tuple shares.
func (t *Tracker) Observe(k *series.Key, o Occurrence, now time.Time) []Drop {
	hash := fastHash(t.seed, k)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shard(hash).taken.Add(1)
	reason := t.sealed
	if reason == "" && !t.accepts(k) {
		reason = DropFiltered
	}
	if reason != "" {
		t.reject(k, o, reason)
		return t.dropped()
	}
	at := t.offset(now)
	own := t.under(hash, k, o.DistinctNotes, at)
	e := t.shard(hash).entries.find(hash, &own)
	switch {
	case e == nil:
		t.begin(hash, &own, o, now)
	case e.isOver(&t.rules, at):
		t.end(e, series.Finished, now)
		t.begin(hash, &own, o, now)
	default:
		t.occur(e, o, at)
	}
	return t.dropped()
}

// Single returns the series that one occurrence is by itself, under the base name
// of its key. It does not record the occurrence.
func (t *Tracker) Single(k *series.Key, o Occurrence, now time.Time) series.Series {
	return series.Series{
		Key:         *k,
		Instance:    o.Instance,
		Namespace:   t.namespace(k),
		Name:        k.BaseName(),
		Note:        o.Note,
		Annotations: o.Annotations,
		First:       o.at(now),
		Last:        o.at(now),
		Count:       1,
	}
}

// advanceBatch bounds how many deadlines Advance handles under one lock.
const advanceBatch = 256

// Advance handles the deadlines up to now: heartbeats become due, quiet series
// end, writes that have failed can be retried, and names are forgotten.
func (t *Tracker) Advance(now time.Time) (drops []Drop) {
	batch := func() (more bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		defer func() { drops = append(drops, t.dropped()...) }()
		at := t.offset(now)
		t.tombstones.expire(at)
		for range advanceBatch {
			e, ok := t.sched.Due(at)
			if !ok {
				return false
			}
			t.tick(e, now)
		}
		return true
	}
	for batch() {
	}
	return drops
}

// Wake returns the time from which Advance has something to do if nothing else
// happens before, and the time from which Next can have a write. Each is zero if there
// is none.
func (t *Tracker) Wake(now time.Time) (advance, next time.Time) {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	due, ok := t.sched.NextDue()
	if expires, holds := t.tombstones.expires(); holds && (!ok || expires < due) {
		due, ok = expires, true
	}
	if ok {
		advance = now.Add(due - at)
	}
	if request, ok := t.sched.NextRequest(at); ok {
		next = now.Add(request - at)
	}
	return advance, next
}

// Next returns the write to make next. ok is false if there is none, or if all must
// wait because of a pause or a missing permission; see [Tracker.Wake]. A series
// has one write in flight at a time.
func (t *Tracker) Next(now time.Time) (w *Write, drops []Drop, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		e, pass, ok := t.sched.Next(t.offset(now))
		if !ok {
			return nil, t.dropped(), false
		}
		if w, ok = t.start(e, pass, now); ok {
			return w, t.dropped(), true
		}
	}
}

// Slow says that the request of w takes long. Other series that must pass the same gate wait
// for the response.
func (t *Tracker) Slow(w *Write, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !w.done { // the response may have just arrived
		t.sched.Slow(&w.pass, t.offset(now))
	}
}

// Abandon says that the request of w has not ended in time. Its series waits until it
// ends, because a late write must not follow a newer one. Other series do not wait.
func (t *Tracker) Abandon(w *Write, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !w.done {
		t.sched.Abandon(&w.pass, heartbeat.Failed, 0, t.offset(now))
	}
}

// Apply interprets the response to a write.
func (t *Tracker) Apply(w *Write, r Result, now time.Time) []Drop {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, at := w.entry, t.offset(now)
	w.done = true
	t.sched.Done(e, w.pass, r.Outcome.forGate(), r.RetryAfter, at)
	if r.Outcome != Troubled && r.Outcome != PushedBack {
		t.answer(at)
	}
	if r.Outcome == Written && w.WritesSeries() {
		t.writes++
		if t.written.version == 0 {
			t.written = sample{versionOf(r.Event), at, t.writes}
		}
	}
	if e.life == forgotten {
		return nil
	}
	if e.listing() != nil {
		t.listed(e, w, &r, at)
		return nil
	}
	s := t.step(e, now)
	if !w.WritesSeries() {
		s.tended = t.tends(e, w.Series.Name)
	}
	wasDenied := e.hold().isDenied(heartbeat.Several)
	e.respond(&s, w, &r)
	if !s.forget && (r.Outcome == Refused || r.Outcome == Written && w.WritesSeries()) {
		t.sched.Wait(e, at) // what waits from now on is something new
	}
	t.settle(e, &s)
	switch {
	case r.Outcome == Troubled, r.Outcome == Denied:
		t.giveUp(w, r.Outcome, now)
	case wasDenied && e.failures() == 0:
		t.encourage(w.pass.Gate.Namespace, at)
	}
	return t.dropped()
}

// inParts calls do with every entry, and locks for one shard after the other.
func (t *Tracker) inParts(do func(*Entry)) {
	part := func(x *index) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for _, e := range x.all() {
			do(e)
		}
	}
	for i := range t.shards {
		part(&t.shards[i].entries)
	}
	// Last, because a series can end between two shards: it is found here then, and would be
	// found in neither the other way round. One that goes back to its shard meanwhile is
	// missed; see flushes.find.
	part(&t.closed)
}

// Hurry makes the tracker retry failed writes soon from now on, and drop what the
// server denies. It is for a shutdown.
func (t *Tracker) Hurry(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hurried = true
	t.sched.Hurry(t.offset(now))
}

// Seal ends the intake: from now on every occurrence is dropped for the given
// reason. When Seal returns, no occurrence is added to a series any more. The
// series can still be written.
func (t *Tracker) Seal(reason DropReason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = reason
	for i := range t.shards {
		for _, e := range t.shards[i].entries.all() {
			e.add(e.counter.close())
		}
	}
}

// Clear forgets every series, and returns what the server does not know, as lost
// for the given reason.
func (t *Tracker) Clear(reason DropReason) []Drop {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.shards {
		for _, e := range t.shards[i].entries.all() {
			t.lose(e, reason)
		}
	}
	for _, e := range t.closed.all() {
		t.lose(e, reason)
	}
	return t.dropped()
}

// Stats are numbers of a [Tracker] at one time. Package events documents them.
type Stats struct {
	Occurrences         uint64 // that arrived, including dropped ones
	Singletons, Ongoing int    // series that can recur at any time
	Ended               int    // series that are over, and continue if they recur soon
	Closing             int    // series that wait for their last write
	Capacity            int    // limit of Singletons, Ongoing, and Ended together, and of Closing
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
	s := Stats{Capacity: t.opts.Capacity, Adopted: t.adopted, Closing: t.closed.n, Ongoing: t.lists.ongoing(), Ended: t.lists.ended()}
	s.Singletons = int(t.accepting.Load()) - s.Ongoing - s.Ended
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
