package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
	corev1 "k8s.io/api/core/v1"
)

// Expire ends e if it has been quiet for the window: a singleton is forgotten, a
// series is Finished and has its closing write to make. It does nothing
// otherwise, so a deadline that comes early does no harm.
func (t *Table) Expire(e *Entry, now time.Time) (eff Effects) {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.done || e.detached || at-e.last() < t.opts.Window {
		return eff
	}
	t.end(e, series.Finished, at, &eff)
	return eff
}

// Beat says that the heartbeat of e has come.
func (t *Table) Beat(e *Entry) (eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.done || e.detached || e.state != series.Ongoing {
		return eff
	}
	e.wantBeat = true
	t.unplan(e)
	t.file(e)
	eff.Dirty = append(eff.Dirty, e)
	return eff
}

// end takes e out of the series that take occurrences. If the server knows all
// that there is to know of it, it is forgotten; otherwise it waits for its last
// write, with the given state if it was Ongoing. The table is locked.
func (t *Table) end(e *Entry, as series.State, at time.Duration, eff *Effects) {
	s := t.lock(e)
	t.detach(e)
	if e.state == series.Ongoing {
		e.state = as
		e.revision++
	}
	s.mu.Unlock()
	t.closed.end(t.nameHashOf(e))
	if e.refusal != nil && !e.inFlight {
		t.lose(e, "", eff)
		return
	}
	eff.Ended = append(eff.Ended, e)
	if !e.named {
		// It takes its name before its successor asks for one.
		t.nameEntry(e, at)
	}
	held := at
	if e.exists {
		held = e.wroteAt
	}
	t.holdBaseName(e, held)
	if e.need() == writeNothing && !e.inFlight {
		t.forget(e)
		return
	}
	t.file(e)
	eff.Dirty = append(eff.Dirty, e)
	t.boundClosing(eff)
}

// detach has e take no occurrences any more. The table and the shard are locked.
func (t *Table) detach(e *Entry) {
	t.shard(e.hash).remove(e)
	e.add(e.tally.close())
	t.active.Add(-1)
	e.detached = true
	t.detached.insert(e)
	t.closing.Add(1)
	t.unplan(e)
}

// forget stops tracking e, which must be detached. The table is locked.
func (t *Table) forget(e *Entry) {
	e.done = true
	t.words.release(&e.key)
	t.detached.remove(e)
	t.closing.Add(-1)
	t.file(e)
}

// lose gives up what the server does not know of e, which must be detached. If
// the server has refused e, that is the reason, and not the given one. The table
// is locked.
func (t *Table) lose(e *Entry, reason DropReason, eff *Effects) {
	if e.refusal != nil {
		reason = *e.refusal
	}
	s := t.lock(e)
	lost := e.lost()
	s.mu.Unlock()
	if lost > 0 {
		eff.Dropped = append(eff.Dropped, Drop{Reason: reason, Key: e.Key(), Note: e.note, Count: lost})
	}
	eff.Ended = append(eff.Ended, e)
	t.forget(e)
}

// makeRoom ends a series so that one with key k can begin, and reports whether
// it could. The table is locked.
func (t *Table) makeRoom(k *series.Key, at time.Duration, eff *Effects) bool {
	if e := t.lists[placeWritten].longestIdle((*Entry).last); e != nil {
		t.end(e, series.Unknown, at, eff)
		return true
	}
	if e := t.lists[placeOngoing].longestIdle((*Entry).last); e != nil {
		t.end(e, series.Unknown, at, eff)
		return true
	}
	if k.Type != corev1.EventTypeWarning {
		return false
	}
	e := t.lists[placeUnwritten].longestIdle((*Entry).last)
	if e == nil {
		return false
	}
	t.discard(e, DropDisplaced, eff)
	return true
}

// discard ends a series that takes occurrences without another write. The table
// is locked.
func (t *Table) discard(e *Entry, reason DropReason, eff *Effects) {
	s := t.lock(e)
	t.detach(e)
	s.mu.Unlock()
	t.lose(e, reason, eff)
}

// forgetSilent gives up e if it was restored and has not occurred since, and
// reports whether that was so. All that is known of it stood in an Event that is
// gone now; to make that anew would bring back what somebody has deleted, or what
// ended long ago. The table is locked.
func (t *Table) forgetSilent(e *Entry, eff *Effects) bool {
	s := t.lock(e)
	// What occurs from here on would not be looked at.
	e.add(e.tally.close())
	if !e.silent {
		s.open(e)
		s.mu.Unlock()
		return false
	}
	if !e.detached {
		t.detach(e)
	}
	s.mu.Unlock()
	t.lose(e, "", eff) // the server knew all of it
	return true
}

// boundClosing gives up the longest idle ended series if too many wait for
// their last write, Normals before Warnings. The table is locked.
func (t *Table) boundClosing(eff *Effects) {
	for int(t.closing.Load()) > t.opts.Capacity {
		e := t.lists[placeClosingNormal].longestIdle((*Entry).last)
		if e == nil {
			e = t.lists[placeClosingWarning].longestIdle((*Entry).last)
		}
		if e == nil {
			return // the others are being written
		}
		t.lose(e, DropClosingFull, eff)
	}
}
