package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// Restore adds a series that an earlier process has left on the server, so that the
// next occurrence continues it, and reports whether it did. The series must belong
// to the controller, and in the scope SameInstance to the instance, of this
// tracker:
//
//   - A series is ignored if its name or times are impossible, or if it is known.
//   - A series that is alive accepts occurrences. An ongoing one is Finished if
//     none comes for FinishAfter from now.
//   - A series that is dead but says Ongoing is closed on the server.
//
// The list may be out of date, so Restore ignores series whose keys have ended in
// this tracker. Heartbeats of restored series are spread over the time until others
// take them for dead.
//
// Restore fills at most half of the tracker. What it leaves out is found by its name
// when it occurs again.
func (t *Tracker) Restore(found *series.Series, now time.Time) (restored bool, drops []Drop) {
	key, named := t.keyOf(found)
	if !named || found.Namespace != t.namespace(&key) {
		return false, nil
	}
	what := t.judgeTimes(found, now)
	if what != alive && (what != dead || found.State != series.Ongoing) {
		return false, nil
	}
	at := t.offset(now)
	hash := fastHash(t.seed, &key)
	s := t.shard(hash)
	t.mu.Lock()
	defer t.mu.Unlock()
	s.mu.Lock()
	e, sealed := s.entries.find(hash, &key), s.sealed != ""
	s.mu.Unlock()
	switch {
	case sealed, t.tombstones.ended(t.nameHash(&key)), t.tends(hash, &key, found.Name, e):
		return false, nil // it can be the one that has ended, as it was before
	case what == dead && e != nil && e.concerns(found.Name):
		return false, nil
	case what == dead:
		return t.restoreDead(hash, &key, found, now), nil
	case e == nil:
		return t.restoreAlive(s, hash, &key, found, now), nil
	case !t.canAdopt(e, found.Name):
		return false, nil
	}
	theirs := found.Count
	switch t.judgeFor(e, found, now) {
	case own:
		theirs = 0
	case shared:
		theirs -= e.smallestAttempt()
	default:
		// Other processes have counted all of them.
	}
	t.adopt(e, found, theirs, at)
	t.delay(e, 0, at)
	t.conclude(e, at, &drops)
	return true, drops
}

// canAdopt reports whether e, which accepts occurrences, can continue in an Event
// with the given name. It cannot if it has had an Event, or may have one.
func (t *Tracker) canAdopt(e *Entry, name string) bool {
	return e.phase == unwritten && !e.status.existed && !t.sched.InFlight(e) && (!e.status.named || e.name() == name)
}

// concerns reports whether e has, or will claim, the Event with the given name.
func (e *Entry) concerns(name string) bool {
	return e.name() == name || !e.status.named && name == e.baseName() ||
		e.phase == claiming && (e.extra.claim.name == name || e.extra.claim.next == name)
}

// restored returns an entry for found that knows no more than the server does.
// Tracker.mu is held.
func (t *Tracker) restored(k *series.Key, found *series.Series, at time.Duration) *Entry {
	e := &Entry{
		key:  t.words.intern(k, found.Instance),
		spec: spec{note: found.Note, silent: true, state: found.State, first: found.First.UnixMicro(), count: found.Count},
	}
	// The note is an old one, so format that of the next occurrence.
	e.spec.notedAt.Store(tenths(at - longAgo))
	t.adopt(e, found, 0, at)
	// Nothing is to be written: that the process is new is no news.
	e.status.flush, e.status.signpost = false, false
	return e
}

// restoreAlive makes found accept occurrences, if there is room: a series that
// occurs now is worth more than one that may. Tracker.mu is held.
func (t *Tracker) restoreAlive(s *shard, hash uint64, k *series.Key, found *series.Series, now time.Time) bool {
	if t.accepting.Load() >= t.restorable() {
		return false
	}
	at := t.offset(now)
	e := t.restored(k, found, at)
	if e.spec.state == series.Singleton {
		first := at - now.Sub(found.First)
		e.counter.occurred(first)
		e.status.at = first
	} else {
		e.counter.occurred(at)
		left := min(t.opts.HeartbeatInterval, t.aliveFor(found)-now.Sub(found.Last))
		e.status.beatAt = t.jitter(e, at+t.opts.HeartbeatInterval)
		if e.status.beatAt > at+left {
			// The earlier process had another phase.
			e.status.beatAt = at + time.Duration(fraction(hash)*float64(left))
		}
		e.status.at = e.status.beatAt - t.opts.HeartbeatInterval
		e.status.beatAt = min(e.status.beatAt, at+t.interval(e))
	}
	s.mu.Lock()
	s.entries.insert(hash, e)
	s.open(e)
	s.mu.Unlock()
	t.accepting.Add(1)
	t.schedule(e, at)
	return true
}

// restoreDead closes found, if there is room among what this tracker has to close
// itself. Tracker.mu is held.
func (t *Tracker) restoreDead(hash uint64, k *series.Key, found *series.Series, now time.Time) bool {
	if t.closing.Load() >= t.restorable() {
		return false
	}
	at := t.offset(now)
	e := t.restored(k, found, at)
	// If there are too many to close, it is the first to be dropped.
	e.counter.occurred(at - min(now.Sub(found.Last), longAgo))
	e.spec.state = series.Finished
	e.change()
	e.life = closing
	// A series that begins now must not have the name, or its Event would be closed.
	t.holdBaseName(e, at)
	t.closed.insert(hash, e)
	t.closing.Add(1)
	t.schedule(e, at)
	return true
}

// restorable is up to how many entries Restore adds others. What lists find must not
// take the room of what happens in this process.
func (t *Tracker) restorable() int64 { return int64(t.opts.Capacity - t.opts.Capacity/2) }

// longAgo keeps impossible times from overflowing.
const longAgo = 365 * 24 * time.Hour
