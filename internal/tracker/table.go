package tracker

import (
	"hash/maphash"
	"math/rand/v2"
	"time"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// table holds the series: it finds them, takes them through their steps, and puts them where
// they belong. All of its methods require Tracker.mu.
//
// Invariants:
//   - Each key has at most one entry. An entry is found by its key if and only if its class
//     is not none, and then it is in the list of its class.
//   - Entries wait, are ready, or are in flight in sched. Those that are forgotten can be in
//     flight.
//   - The rows of the tallies contain the number of entries that are ongoing.
type table struct {
	rules
	seed    maphash.Seed
	entries map[uint64]*Entry // by the hashes of their keys; Entry.next has others with the same
	size    int               // the number of entries

	sched    *schedule.Schedule[*Entry]
	words    map[words]*words  // what keys share
	lists    [classes][]*Entry // entries by what their eviction loses
	random   *rand.Rand        // chooses victims
	tallies  tallies
	flushes  flushes
	ongoing  int                  // the number of entries that are ongoing
	known    map[string]knowledge // by namespace
	sealed   DropReason           // why no occurrences are accepted; empty while they are
	hurried  bool                 // a shutdown has begun
	failedAt time.Duration        // since when the server has answered no request, schedule.Never if the latest was answered
	failures []string             // namespaces in which requests have failed, see giveUpSome
	upSince  time.Duration        // since when the server has not been away for long, see isAway
	noted    time.Duration        // the bucket of takesNote contains what has been added since

	adopted uint64 // see Stats

	drops []Drop                // by the operation under way
	lost  map[DropReason]uint64 // occurrences in all drops so far
}

// knowledge is what the responses have shown of a namespace.
type knowledge struct {
	existsUntil time.Duration // Options.EventTTL after it had an Event, or was terminating; zero: unknown
	permits     bool          // the server has permitted a patch
}

// remember puts a value into a map. If that is full, all in it is forgotten, and learned again. A
// process whose looks are denied can begin a second Event in a namespace that is forgotten.
func remember[K comparable, V any](in map[K]V, k K, v V) {
	if _, known := in[k]; !known && len(in) >= schedule.MaxRemembered {
		clear(in)
	}
	in[k] = v
}

// find returns the entry of a key, nil if there is none.
func (t *table) find(hash uint64, k *series.Key) *Entry {
	e := t.entries[hash]
	for e != nil && !e.key.is(k) {
		e = e.next
	}
	return e
}

func (t *table) insert(hash uint64, e *Entry) {
	e.next = t.entries[hash]
	t.entries[hash] = e
	t.size++
}

func (t *table) remove(e *Entry) {
	k := e.Key()
	hash := hashOf(t.seed, &k)
	t.size--
	t.entries[hash] = t.entries[hash].without(e)
	if t.entries[hash] == nil {
		delete(t.entries, hash)
	}
}

// without returns the entries with the hash of first, which is the first one, without e.
func (first *Entry) without(e *Entry) *Entry {
	if first != e {
		first.next = first.next.without(e)
		return first
	}
	return e.next
}

// all returns the entries in an order that follows from what has happened.
func (t *table) all() []*Entry {
	all := make([]*Entry, 0, t.size)
	for class := range t.lists {
		all = append(all, t.lists[class]...)
	}
	return all
}

// dropped returns what the operation under way has dropped.
func (t *table) dropped() (drops []Drop) {
	drops, t.drops = t.drops, nil
	return drops
}

// reject drops an occurrence that belongs to no entry.
func (t *table) reject(k *series.Key, o Occurrence, reason DropReason) {
	t.tallies.row(k).Occurrences++
	t.lose(Drop{Reason: reason, Key: *k, Note: o.Note, Count: 1})
}

func (t *table) lose(d Drop) {
	t.drops = append(t.drops, d)
	t.lost[d.Reason] += uint64(d.Count)
}

// observe counts an occurrence of k, which begins a series if there is none.
func (t *table) observe(hash uint64, k *series.Key, o Occurrence, now time.Time) {
	e := t.find(hash, k)
	switch {
	case e == nil:
		e = &Entry{key: t.intern(k, o.Instance), last: t.offset(now)}
		t.insert(hash, e)
	case e.silent: // if it is created again, this process does that
		e.key = t.intern(k, o.Instance)
	}
	e.key.shared.row.Occurrences++
	s := t.step(e, now)
	e.occur(&s, o)
	t.settle(e, &s)
	t.makeRoom(now)
}

// update takes e through a step: do changes e, and settle carries out what follows.
func (t *table) update(e *Entry, now time.Time, do func(*step)) {
	s := t.step(e, now)
	do(&s)
	t.settle(e, &s)
}

// step begins a step of e.
func (t *table) step(e *Entry, now time.Time) step {
	return step{
		rules: &t.rules, table: t, now: now, at: t.offset(now),
		wasOngoing: e.class != classNone && e.isOngoing(),
	}
}

// settle carries out what follows from a step of e, and puts e where it belongs.
func (t *table) settle(e *Entry, s *step) {
	if s.lost > 0 {
		t.lose(Drop{Reason: s.reason, Key: e.Key(), Note: e.note, Count: s.lost})
	}
	if s.adopted {
		t.adopted++
	}
	if t.flushes.follow(e, s.theirs) {
		e.beatAt, e.waits = min(e.beatAt, s.at), false
	}
	kind := e.need(s.at)
	inFlight := t.sched.InFlight(e)
	s.isOver = s.isOver || e.life == closing && kind == none && !inFlight
	switch is := !s.isOver && e.isOngoing(); {
	case is && !s.wasOngoing:
		t.ongoing++
		e.key.shared.row.Ongoing++
	case !is && s.wasOngoing:
		t.ongoing--
		e.key.shared.row.Ongoing--
	}
	switch {
	case s.isOver:
		t.forget(e)
		return
	case kind == none:
		if s.at >= e.beatAt {
			e.beatAt = -series.MaxDuration // overdue, also when a clock is set back
		}
		t.sched.Wait(e, e.deadline(&t.rules, s.at), s.at)
	default:
		t.sched.Ready(e, e.due(&t.rules, kind, s.at), s.at)
	}
	t.classify(e, t.classOf(e))
}

// forget removes e, of which nothing is to be written any more.
func (t *table) forget(e *Entry) {
	t.classify(e, classNone)
	t.remove(e)
	t.sched.Remove(e)
	t.flushes.follow(e, 0)
}

// drop forgets e. What the server does not store is lost.
func (t *table) drop(e *Entry, reason DropReason, now time.Time) {
	s := t.step(e, now)
	s.lost, s.reason, s.isOver = e.unstored(), reason, true
	t.settle(e, &s)
}

// advance takes a number of entries whose deadlines have passed through a step, and gives up what has failed for
// too long. It reports whether there are more.
func (t *table) advance(now time.Time) (more bool) {
	for range batch {
		e, ok := t.sched.Due(t.offset(now))
		if !ok {
			return t.giveUpSome(now)
		}
		t.update(e, now, func(s *step) {
			e.tick(s)
			e.waits = e.waits || e.isEnding(s)
		})
	}
	return true
}

// start returns the write of an entry that has just been put in flight, nil if there is none after all.
func (t *table) start(e *Entry, now time.Time) *Write {
	s := t.step(e, now)
	e.tick(&s)
	kind, k := e.need(s.at), e.Key()
	if kind == none {
		t.sched.Cancel(e, s.at)
	}
	t.settle(e, &s)
	switch {
	case kind == none:
		return nil
	case kind == Heartbeat && t.flushes.follow(e, 0):
		kind = FlushCount
	}
	w := e.write(&s, kind, &k)
	w.Retries, w.Waited = e.slot.Failures() > 0, t.sched.Waited(e, s.at)
	return w
}

// respond applies the response to the write of e.
func (t *table) respond(e *Entry, w *Write, r *Response, now time.Time) {
	s := t.step(e, now)
	t.sched.Done(e, e.respond(&s, w, r), s.at)
	if s.lost > 0 || r.Outcome == schedule.Written && w.Kind != Look {
		t.sched.Remove(e) // what waits from now on is something new
	}
	t.settle(e, &s)
	if !r.Outcome.Passed() {
		t.failed(e, r.Outcome, now)
		t.makeRoom(now) // it waits again, and can be dropped
	}
}

// hear takes what a response shows of the server and of the namespace. A namespace that does not
// exist was deleted if it has existed lately.
func (t *table) hear(w *Write, r *Response, at time.Duration) {
	if !r.Outcome.Handled() {
		t.failedAt = min(t.failedAt, at)
		return
	}
	if t.isAway(at) {
		t.upSince = at
	}
	t.failedAt = schedule.Never
	namespace := w.entry.Namespace()
	p := t.known[namespace]
	if r.Never == DropNamespaceNotFound && (p.existsUntil != 0 && at < p.existsUntil || w.Kind == Recreate) {
		r.Never = DropNamespaceTerminating
	}
	p.permits = p.permits || r.Outcome.Passed() && !w.Creates()
	if r.Outcome == schedule.Written || r.Never == DropNamespaceTerminating {
		p.existsUntil = at + t.opts.EventTTL
	}
	remember(t.known, namespace, p)
}

// isAway reports whether requests have failed for so long, without an answer to any, that it is an
// outage: for more than half of EventTTL, which can pass between two heartbeats of one series.
func (t *table) isAway(at time.Duration) bool {
	return t.failedAt < at-t.opts.EventTTL*5/8
}

// lastRetries is for how long a series that has waited for Options.EventTTL can have its last retry. Then
// another failure of its namespace is enough.
const lastRetries = 115 * time.Second

// failed says that a request of e has failed. What has failed and has waited for longer than the server keeps an
// Event is given up. After lastRetries, it needs no request of its own: many series of a namespace that is denied would take many.
// While the server is away, time does not count. A shutdown waits for no series that the server has denied or rejected twice.
func (t *table) failed(e *Entry, o schedule.Outcome, now time.Time) {
	at := t.offset(now)
	switch {
	case t.hurried && o.Handled() && e.slot.Handled > 1:
		t.giveUp(e, now)
	case t.hurried, t.isAway(at), at-t.upSince < t.opts.EventTTL:
	default:
		if t.sched.Waited(e, at) >= t.opts.EventTTL {
			t.giveUp(e, now)
		}
		t.failures = append(t.failures, e.Namespace())
	}
}

// giveUpSome gives up a number of series that have failed and have waited for too long in a namespace whose latest request
// has failed. It reports whether there are more.
func (t *table) giveUpSome(now time.Time) (more bool) {
	for left := batch; left > 0 && len(t.failures) > 0; {
		late := t.sched.Failed(t.failures[0], t.offset(now)-t.opts.EventTTL-lastRetries, left)
		for _, e := range late {
			t.giveUp(e, now)
		}
		if left -= len(late); left > 0 {
			t.failures = t.failures[1:]
		}
	}
	return len(t.failures) > 0
}

// giveUp drops what the server does not store of e, for the reason of its latest response.
func (t *table) giveUp(e *Entry, now time.Time) {
	if e.class != classNone {
		t.sched.Remove(e)
		t.update(e, now, func(s *step) { e.lose(s, reasons[e.slot.Last]) })
	}
}
