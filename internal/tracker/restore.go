package tracker

import (
	"cmp"
	"slices"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Restore adds a series that an earlier process has left on the server, so that the
// next occurrence continues it, and reports whether it did. The series must belong
// to the controller, and in the scope SameInstance to the instance, of this
// tracker:
//
//   - A series is ignored if its name or times are impossible, or if it is known.
//   - A series that is alive accepts occurrences. An ongoing one is Finished if none
//     comes for its window from now. One that is Finished or Unknown rests.
//   - A series that is dead but says Ongoing is closed on the server. So is one that
//     Options.Accepts does not accept.
//
// The list may be out of date, so Restore ignores series whose keys have ended in
// this tracker. Heartbeats of restored series are spread over the time until others
// take them for dead.
//
// Restore fills at most half of the tracker. What it leaves out is found by its name
// when it occurs again.
func (t *Tracker) Restore(found *series.Series, now time.Time) (restored bool, drops []Drop) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, named := t.keyOf(found)
	if !named || found.Namespace != t.namespace(&key) {
		return false, nil
	}
	what := t.judgeTimes(found, now)
	if what == alive && !t.accepts(&key) {
		what = dead // so that the Event of an Ongoing series says that it is over
	}
	if what != alive && (what != dead || found.State != series.Ongoing) {
		return false, nil
	}
	at := t.offset(now)
	hash := fastHash(t.seed, &key)
	e := t.shard(hash).entries.find(hash, &key)
	base := t.tombstones.get(nameHash(t.seed, &key))
	isTended := slices.ContainsFunc(slices.Collect(t.closed.with(hash)), func(e *Entry) bool { return e.key.is(&key) && e.name() == found.Name })
	switch {
	case t.sealed != "", base.ended, isTended:
		return false, nil // it can be the one that has ended, as it was before
	case what == dead && e != nil && e.concerns(found.Name):
		return false, nil
	case what == dead:
		return t.restoreDead(hash, &key, found, now), t.dropped()
	case e == nil:
		return t.restoreAlive(hash, &key, found, now), t.dropped()
	case t.sched.InFlight(e) || !e.canAdopt(found.Name):
		return false, nil
	}
	s := t.step(e, now)
	e.adopt(&s, found, alive)
	e.setFailures(&t.rules, 0, at)
	t.settle(e, &s)
	return true, t.dropped()
}

// canAdopt reports whether e, which accepts occurrences and is not in flight, can continue
// in a listed Event with the given name. It cannot if it has had an Event, or may have one
// since its create, which can be newer than the list.
func (e *Entry) canAdopt(name string) bool {
	return e.phase == unwritten && !e.hasExisted() && !e.hasAttempts() && (e.status.names == 0 || e.name() == name)
}

// concerns reports whether e has, or will claim, the Event with the given name.
func (e *Entry) concerns(name string) bool {
	return e.name() == name || e.status.names == 0 && name == e.baseName() ||
		e.phase == claiming && (e.rare.claim.name == name || e.rare.claim.next == name)
}

// restored returns an entry for found that knows no more than the server does. Its latest
// occurrence was at last.
func (t *table) restored(k *series.Key, found *series.Series, last time.Duration, now time.Time) *Entry {
	e := &Entry{
		key:    t.words.intern(k, found.Instance),
		spec:   spec{note: found.Note, first: found.First.UnixMicro(), progress: progress{state: found.State, count: found.Count}},
		silent: true,
	}
	// The note is an old one, so format that of the next occurrence.
	e.spec.notedAt.Store(tenths(t.offset(now) - longAgo))
	e.counter.occurred(last)
	s := t.step(e, now)
	e.adopt(&s, found, own)
	// Nothing is to be written: that the process is new is no news.
	e.status.due = 0
	return e
}

// restoreAlive makes found accept occurrences, if there is room: a series that
// occurs now is worth more than one that may.
func (t *table) restoreAlive(hash uint64, k *series.Key, found *series.Series, now time.Time) bool {
	if t.accepting.Load() >= int64(t.opts.restorable()) {
		return false
	}
	at := t.offset(now)
	last := at - now.Sub(found.Last)
	if found.State == series.Ongoing {
		last = at // it is later than the Event says
	}
	e := t.restored(k, found, last, now)
	switch {
	case found.State == series.Singleton:
		e.status.at = e.last()
	case found.State.Closed():
		e.status.at = e.last()
		e.life = resting
	default:
		e.assume(&t.rules, found.QuietWindow(), 0)
		// Readers take it for Unknown then, or the server deletes it.
		stale := min(cmp.Or(found.Heartbeat, series.DefaultHeartbeat)+found.QuietWindow(), t.opts.EventTTL)
		left := min(t.opts.HeartbeatInterval, max(stale-now.Sub(found.Last), 0))
		e.status.beatAt = t.jitter(e, at+t.opts.HeartbeatInterval)
		if e.status.beatAt > at+left {
			// The earlier process had another phase.
			e.status.beatAt = at + time.Duration(fraction(hash)*float64(left))
		}
		e.status.at = e.status.beatAt - t.opts.HeartbeatInterval
		e.status.beatAt = min(e.status.beatAt, at+t.interval(e))
	}
	t.accept(hash, e)
	t.place(e, at)
	return true
}

// restoreDead closes found, if there is room among what this tracker has to close
// itself.
func (t *table) restoreDead(hash uint64, k *series.Key, found *series.Series, now time.Time) bool {
	if t.closed.n >= t.opts.restorable() {
		return false
	}
	at := t.offset(now)
	// If there are too many to close, it is the first to be dropped.
	e := t.restored(k, found, at-min(now.Sub(found.Last), longAgo), now)
	e.spec.state = series.Finished
	e.change()
	e.life = closing
	s := t.step(e, now)
	// A series that begins now must not have the name, or its Event would be closed.
	e.holdBaseName(&s, at)
	t.closed.insert(hash, e)
	t.settle(e, &s)
	return true
}

// longAgo keeps impossible times from overflowing.
const longAgo = 365 * 24 * time.Hour
