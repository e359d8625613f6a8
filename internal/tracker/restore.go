package tracker

import (
	"math"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Restore takes in a series that an earlier process has left on the server, so
// that the next occurrence goes on with it. It must be one of the controllers, and
// unless they share their series the instances, that this table is for. What
// becomes of it:
//
//   - one whose name or times cannot be, or that is known already, is passed over;
//   - a series that is alive takes occurrences again. A running one has a window
//     from now to show itself;
//   - one that is dead but says Ongoing gets its closing write.
//
// The result is nil if the table has not taken it. What was listed may be out of
// date: of a key of which this table has ended a series, nothing is taken.
//
// spread, at least 0 and less than 1, says where in the time until its next
// heartbeat the series is, so that those that were restored together do not all
// send theirs at once. That time is an interval, but not longer than until
// another process would take the series for dead.
func (t *Table) Restore(found *series.Series, spread float64, now time.Time) (_ *Entry, eff Effects) {
	key := t.keyOf(found)
	what := t.judge(&key, found, now)
	if what != alive && (what != dead || found.State != series.Ongoing) {
		return nil, eff
	}
	hash := key.FastHash(t.seed)
	s := t.shard(hash)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.mu.Lock()
	e, sealed := s.find(hash, &key), s.sealed != ""
	s.mu.Unlock()
	switch {
	case sealed:
		return nil, eff
	case t.closed.ended(t.nameHash(hash, &key)) || t.has(hash, &key, found.Name, e):
		// Perhaps found is the one that has ended, as it was before.
		return nil, eff
	case what == dead && (e == nil || !e.concerns(found.Name)):
		return t.restoreDead(hash, &key, found, now, &eff), eff
	case what == dead:
		return nil, eff
	case e == nil:
		return t.restoreAlive(s, hash, &key, found, spread, now), eff
	case !e.canAdopt(found.Name):
		return nil, eff
	}
	t.adopt(e, found, t.judgeFor(e, found, now) != own, t.offset(now))
	t.plan(e)
	t.file(e)
	eff.Dirty = append(eff.Dirty, e)
	return e, eff
}

// canAdopt reports whether e, which takes occurrences, can still go on in an Event
// with the given name. It cannot if it has had one, or is about to look at what
// there is, or may have one without knowing. The table is locked.
func (e *Entry) canAdopt(name string) bool {
	return !e.existed && !e.inFlight && e.meeting == nil && e.refusal == nil && (!e.named || e.name() == name)
}

// concerns reports whether e has, or will meet, the Event with the given name. The
// table is locked.
func (e *Entry) concerns(name string) bool {
	return e.name() == name || !e.named && name == e.baseName() ||
		e.meeting != nil && (e.meeting.name == name || e.meeting.next == name)
}

// restored returns an entry for found that knows no more than the server does. The
// table is locked.
func (t *Table) restored(hash uint64, k *series.Key, found *series.Series, at time.Duration) *Entry {
	e := &Entry{key: t.words.compact(k), hash: hash, note: found.Note, silent: true, state: found.State, count: found.Count}
	if t.opts.ShareInstances {
		e.shared = &shared{}
	}
	// The note is an old one, so that of the next occurrence is looked at.
	e.notedAt.Store(int64(at - t.opts.NoteInterval))
	t.adopt(e, found, false, at)
	e.lastNote = found.LastNote
	// Nothing is to be written: that the process is new is no news.
	e.wrote, e.flushTo, e.wantSuccessor = e.revision, 0, false
	return e
}

// restoreAlive has found take occurrences, if there is room: what goes on now is
// worth more than what may go on. The table is locked.
func (t *Table) restoreAlive(s *shard, hash uint64, k *series.Key, found *series.Series, spread float64, now time.Time) *Entry {
	if t.active.Load() >= int64(t.opts.Capacity) {
		return nil
	}
	at := t.offset(now)
	e := t.restored(hash, k, found, at)
	if e.state == series.Singleton {
		first := at - now.Sub(found.First)
		e.tally.occurred(first)
		e.wroteAt = first
	} else {
		e.tally.occurred(at)
		left := min(t.opts.Heartbeat, t.opts.Heartbeat+t.opts.Window-now.Sub(found.Last))
		e.wroteAt = at - t.opts.Heartbeat + left - time.Duration(spread*float64(left))
		e.beat = t.beats.bookAt(e.wroteAt + t.opts.Heartbeat)
		// Its early heartbeats are over, as far as anybody knows.
		e.beats = math.MaxUint16
	}
	s.mu.Lock()
	s.insert(e)
	s.open(e)
	s.mu.Unlock()
	t.active.Add(1)
	t.file(e)
	return e
}

// restoreDead has found closed, if there is room among what this table has to
// close itself. The table is locked.
func (t *Table) restoreDead(hash uint64, k *series.Key, found *series.Series, now time.Time, eff *Effects) *Entry {
	if t.closing.Load() >= int64(t.opts.Capacity) {
		return nil
	}
	at := t.offset(now)
	e := t.restored(hash, k, found, at)
	// Should there be too many to close, it is the first that goes.
	e.tally.occurred(at - min(now.Sub(found.Last), longAgo))
	e.state = series.Finished
	e.revision++
	e.detached = true
	// What begins now must not have the name, or it would be closed by mistake.
	t.holdBaseName(e, at)
	t.detached.insert(e)
	t.closing.Add(1)
	t.file(e)
	eff.Dirty = append(eff.Dirty, e)
	return e
}

// longAgo keeps times that nobody expects from overflowing.
const longAgo = 365 * 24 * time.Hour
