package tracker

import (
	"slices"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// table holds the series: it finds them, takes their machines through their steps, and
// puts them where they belong. Tracker.mu must be held for all of its methods.
//
// An occurrence of an ongoing series takes no lock. So the rules and the seed never
// change, and the indexes of the shards and the counters can be read while they change.
//
// Invariants:
//   - An entry is in lists[p] if and only if evictionClass says p, and its class
//     is p.
//   - An entry is in its shard if and only if it is accepting or resting, and
//     directory.accepting is their number. It is in closed if and only if it is closing.
//   - The counter of an entry is open if and only if occurrences change nothing but the
//     count, as Entry.countsFast says, and the table is not sealed. A closed counter
//     holds no occurrences.
//   - Entries that are not forgotten wait, are ready, or are in flight in sched, as their
//     plan says; entries that are forgotten can be in flight.
type table struct {
	rules
	directory
	gap time.Duration // a shorter one between two occurrences changes no window

	sched      *heartbeat.Schedule[*Entry]
	lists      classes
	tombstones *tombstones
	words      vocabulary // of the entries that are not forgotten
	tallies    tallies
	flushes    flushes
	sealed     DropReason    // why no occurrences are accepted; empty while they are
	hurried    bool          // a shutdown has begun
	answered   time.Duration // when the server answered last
	upSince    time.Duration // since when it has answered now and then
	written    sample        // of the response to the first write
	writes     uint64        // that the server has accepted
	adopted    uint64
	drops      []Drop // by the operation under way
}

// dropped returns what the operation under way has dropped.
func (t *table) dropped() (drops []Drop) {
	drops, t.drops = t.drops, nil
	return drops
}

// reject drops an occurrence that belongs to no entry.
func (t *table) reject(k *series.Key, o Occurrence, reason DropReason) {
	t.tallies.count(tallyKeyOf(k), 1)
	t.drops = append(t.drops, Drop{Reason: reason, Key: *k, Note: o.Note, Count: 1})
}

// occur counts an occurrence of e, which accepts it.
func (t *table) occur(e *Entry, o Occurrence, at time.Duration) {
	e.drain()
	isNews := e.occur(&t.rules, at)
	e.describe(o, at)
	if isNews {
		t.place(e, at)
	}
	t.open(e)
}

// begin begins a series with an occurrence of k, if there is room. If an evicted series
// of the key waits for its last write, it continues that one.
func (t *table) begin(hash uint64, k *series.Key, o Occurrence, now time.Time) {
	at := t.offset(now)
	if t.accepting.Load() >= int64(t.opts.Capacity) && !t.makeRoom(k, now) {
		t.reject(k, o, DropTableFull)
		return
	}
	if e := t.evicted(hash, k, at); e != nil {
		t.closed.remove(hash, e)
		t.accept(hash, e)
		t.occur(e, o, at)
		t.flushes.find(e, at)
		return
	}
	e := &Entry{
		key: t.words.intern(k, o.Instance),
		spec: spec{
			note:     noteFor(k, o.Note),
			first:    o.at(now).UnixMicro(),
			progress: progress{count: 1, revision: 1},
		},
	}
	t.tallies.count(tallyKeyOf(k), 1) // at once, because the first reasons get rows
	e.spec.setAnnotations(mergeAnnotations(nil, o.Annotations))
	e.spec.notedAt.Store(tenths(at))
	e.counter.occurred(at)
	t.accept(hash, e)
	t.place(e, at)
}

// evicted returns the latest entry of k that is closing, and that an occurrence continues.
func (t *table) evicted(hash uint64, k *series.Key, at time.Duration) (latest *Entry) {
	for e := range t.closed.with(hash) {
		if e.key.is(k) && !e.silent && !e.isOver(&t.rules, at) && (latest == nil || e.last() > latest.last()) {
			latest = e
		}
	}
	return latest
}

func (t *table) accept(hash uint64, e *Entry) {
	s := t.shard(hash)
	s.mu.Lock()
	s.entries.insert(hash, e)
	s.mu.Unlock()
	t.accepting.Add(1)
	t.open(e)
}

// open lets occurrences of e be counted without a lock, if that is all that they do.
func (t *table) open(e *Entry) {
	if e.countsFast() && t.sealed == "" {
		e.counter.open()
	}
}

// detach makes e accept no occurrences any more.
func (t *table) detach(e *Entry) {
	hash := t.hashOf(e)
	s := t.shard(hash)
	s.mu.Lock()
	s.entries.remove(hash, e)
	s.mu.Unlock()
	t.accepting.Add(-1)
	e.add(e.counter.close())
	e.life = closing
}

func (t *table) step(e *Entry, now time.Time) step {
	e.drain()
	base := t.tombstones.get(t.nameHashOf(e))
	return step{
		rules: &t.rules, now: now, at: t.offset(now),
		crowded: t.lists.ongoing() > spreadFrom,
		base:    base, found: base,
	}
}

// spreadFrom is the number of ongoing series up to which their heartbeats come
// exactly an interval after the last write. So few need not be spread.
const spreadFrom = 8

// settle carries out what follows from a step of e, and puts e where it belongs.
func (t *table) settle(e *Entry, s *step) {
	if s.base != s.found {
		t.tombstones.put(t.nameHashOf(e), s.base)
	}
	if s.lost > 0 {
		t.drops = append(t.drops, Drop{Reason: s.reason, Key: e.Key(), Note: e.spec.note, Count: s.lost})
	}
	if s.adopted {
		t.adopted++
	}
	if s.led != nil {
		t.led(e, s.led)
	}
	switch {
	case e.life == forgotten:
	case s.forget:
		t.forget(e)
	case s.left:
		t.end(e, series.Ongoing, s.now)
	default:
		t.open(e)
		t.place(e, s.at)
	}
}

// led passes on the version that a signpost has given to the Event under the base name of
// e. The entry that has yet to close that Event needs it, unless others have written to
// the Event, too.
func (t *table) led(e *Entry, base *series.Series) {
	k := e.Key()
	t.another(e, func(other *Entry) bool {
		st := &other.status
		if other.life == closing && other.phase == live && other.key.is(&k) && other.name() == base.Name &&
			st.count == base.Count && st.state == base.State && st.last == base.Last.UnixMicro() {
			st.version = VersionNumber(base.Version)
		}
		return false
	})
}

// place puts e where it belongs after a change: into the list of its eviction class, and
// into the schedule. If there is nothing left to do for e, place forgets it.
func (t *table) place(e *Entry, at time.Duration) {
	if !t.sched.InFlight(e) {
		e.compareEnded()
	}
	if t.flushes.awaited(e) {
		e.status.due |= dueCount
	}
	if e.isDone() && !t.sched.InFlight(e) {
		t.lose(e, "")
		return
	}
	t.classify(e)
	switch p := e.plan(&t.rules, at, t.hurried); {
	case p.ready:
		t.sched.Ready(e, p.at, p.hard, at)
	case p.held:
		t.sched.Retry(e, p.at, at)
	default:
		t.sched.Wait(e, p.at)
	}
	t.flushes.tell(e)
	t.boundClosing()
}

// end ends an entry that accepts occurrences. If the server knows all of it, the
// table forgets it; otherwise it waits for its last write, with the given state
// if it was Ongoing.
func (t *table) end(e *Entry, as series.State, now time.Time) {
	t.detach(e)
	e.finish(as)
	s := t.step(e, now)
	s.base.ended, s.base.last = true, e.last()
	switch {
	case e.phase == refused && (as == series.Unknown || e.lost() == 0):
		e.lose(&s, "")
		t.settle(e, &s)
		return
	case e.phase == refused:
		e.tryAgain(&s)
	}
	// It takes its name before its successor asks for one.
	t.nameEntry(e, &s)
	held := s.at
	if e.exists() {
		held = e.status.at
	}
	e.holdBaseName(&s, held)
	if t.sched.InFlight(e) || !e.isDone() {
		t.closed.insert(t.hashOf(e), e)
	}
	t.settle(e, &s)
}

// lose ends an entry without another write. What the server does not know of it is lost.
func (t *table) lose(e *Entry, reason DropReason) {
	var s step
	e.lose(&s, reason)
	t.settle(e, &s)
}

func (t *table) forget(e *Entry) {
	if e.life < closing && e.listing() == nil {
		t.detach(e)
	}
	e.life = forgotten
	if e.listing() == nil {
		t.tally(e)
		t.words.release(&e.key)
		t.closed.remove(t.hashOf(e), e)
	}
	t.classify(e)
	t.sched.Remove(e)
	t.flushes.tell(e)
}

// nameEntry gives e its first name, if it has none: the base name, or a unique one if
// that is taken or an earlier entry has yet to write there. If the series that has the
// base name was evicted, it continues: e looks at its Event.
func (t *table) nameEntry(e *Entry, s *step) {
	if e.status.names > 0 {
		return
	}
	e.status.names = 1
	isOurs, _ := s.base.ownerAt(s.at)
	switch taken := t.another(e, (*Entry).hasBaseName); {
	case !taken && isOurs == ownerUs && s.base.ended && s.at-s.base.last < t.opts.MaxWindow:
		e.becomeClaiming(e.baseName())
	case taken, s.base.takenAt(s.at):
		e.takeUniqueName()
		for t.tends(e, e.name()) { // it began in the same microsecond
			e.takeUniqueName()
		}
	}
}

func (t *table) tick(e *Entry, now time.Time) {
	at := t.offset(now)
	switch {
	case e.listing() != nil:
	case t.endIfOver(e, now):
		return
	default:
		s := t.step(e, now)
		e.tick(&s)
		t.open(e)
	}
	t.place(e, at)
}

// endIfOver ends an entry that no occurrence continues. If the series is quiet here, and
// another process tends it, it remains Ongoing.
func (t *table) endIfOver(e *Entry, now time.Time) bool {
	at := t.offset(now)
	switch {
	case e.isQuiet(&t.rules, at) && e.isTheirs(&t.rules, at):
		t.end(e, series.Ongoing, now)
	case e.life < closing && e.isOver(&t.rules, at):
		t.end(e, series.Finished, now)
	default:
		return false
	}
	return true
}

// start returns the write of an entry that has just been put in flight. ok is
// false if there is none after all.
func (t *table) start(e *Entry, pass heartbeat.Pass, now time.Time) (w *Write, ok bool) {
	at := t.offset(now)
	if e.listing() != nil {
		return t.startList(e, pass, at)
	}
	if k := e.Key(); t.opts.Accepts != nil && e.isUnknown() && !t.accepts(&k) {
		t.sched.Done(e, pass, heartbeat.None, 0, at)
		t.lose(e, DropFiltered)
		return nil, false
	}
	t.endIfOver(e, now)
	s := t.step(e, now)
	e.tick(&s)
	if e.phase == refused && e.need() == Create {
		e.tryAgain(&s)
	}
	t.open(e)
	t.nameEntry(e, &s)
	e.compareEnded()
	kind := e.need()
	if kind == Signpost {
		e.wantLead(&s) // it may have been forgotten whose the Event under the base name is
		kind = e.need()
	}
	if kind == none {
		t.sched.Done(e, pass, heartbeat.None, 0, at)
		t.settle(e, &s)
		return nil, false
	}
	w = e.write(&s, kind)
	w.pass = pass
	t.classify(e)
	return w, true
}

func (t *table) answer(at time.Duration) {
	if t.isSilent(at) {
		t.upSince = at
	}
	t.answered = at
}

// isSilent reports whether the server has not answered for so long that it is an outage:
// for more than half of EventTTL, because one series alone may need only a heartbeat in
// each half.
func (t *table) isSilent(at time.Duration) bool { return at-t.answered > t.opts.EventTTL*5/8 }

// giveUp drops what has waited for longer than the server keeps an Event, because its
// requests have failed, although the server has answered for as long. Of those that have
// been denied, only the one that has just been denied again: the others may be permitted by
// now. What has never been sent waits on, unless its gate has failed several requests in a
// row.
//
// A shutdown waits for nothing that the server denies: for no series that it has denied
// twice in a row, and for none behind a gate that has denied several series.
func (t *table) giveUp(w *Write, o Outcome, now time.Time) {
	at := t.offset(now)
	reason := DropUnavailable
	if o == Denied {
		reason = DropDenied
	}
	isGate := t.sched.Failures(w.pass.Gate) >= heartbeat.Several
	var lost []*Entry
	switch {
	case o == Denied && t.hurried && isGate:
		lost = t.sched.PendingSince(w.pass.Gate, at)
	case o == Denied && t.hurried && w.entry.failures() > 1:
		lost = []*Entry{w.entry}
	case at-t.upSince >= t.opts.EventTTL && !t.isSilent(at):
		lost = t.sched.PendingSince(w.pass.Gate, at-t.opts.EventTTL)
		lost = slices.DeleteFunc(lost, func(e *Entry) bool {
			return e != w.entry && (!isGate && !e.Tried() || o == Denied && e.Tried())
		})
	}
	for _, e := range lost {
		if e.life == forgotten || e.listing() != nil {
			continue // another loss has made room; a list is given up elsewhere
		}
		s := t.step(e, now)
		e.refuse(&s, reason)
		t.settle(e, &s)
	}
}

// encourage has the series of a namespace that are rarely tried, because they have been
// denied for long, tried soon: one like them has passed. If the server denies one
// nevertheless, it is rarely tried again.
func (t *table) encourage(namespace string, at time.Duration) {
	for i := range t.shards {
		for _, e := range t.shards[i].entries.all() {
			if !e.hold().isDenied(heartbeat.DeniedOften) || e.Gate().Namespace != namespace || t.sched.InFlight(e) {
				continue
			}
			until := min(e.rare.hold.until, at+t.backoffDenied(heartbeat.DeniedOften))
			e.rare.hold = hold{until: until, why: encouraged, failures: heartbeat.DeniedOften}
			if e.phase == refused {
				e.status.beatAt = min(e.status.beatAt, until)
			}
			t.place(e, at)
		}
	}
}
