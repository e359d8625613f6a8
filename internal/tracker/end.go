package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// end ends an entry that accepts occurrences. If the server knows all of it, the
// tracker forgets it; otherwise it waits for its last write, with the given state
// if it was Ongoing. Tracker.mu is held.
func (t *Tracker) end(e *Entry, as series.State, at time.Duration, drops *[]Drop) {
	s := t.drain(e)
	t.close(e)
	if e.spec.state == series.Ongoing {
		e.spec.state = as
		e.change()
	}
	s.mu.Unlock()
	t.tombstones.end(t.nameHashOf(e))
	inFlight := t.sched.InFlight(e)
	if e.phase == refused && !inFlight {
		t.lose(e, "", drops)
		return
	}
	if !e.status.named {
		// It takes its name before its successor asks for one.
		t.nameEntry(e, at)
	}
	held := at
	if e.exists() {
		held = e.status.at
	}
	t.holdBaseName(e, held)
	if e.need() == none && !inFlight {
		t.forget(e)
		return
	}
	t.closed.insert(t.hashOf(e), e)
	t.closing.Add(1)
	t.schedule(e, at)
	t.boundClosing(drops)
}

// close ends the acceptance of occurrences. The caller puts e into Tracker.closed or
// forgets it. Tracker.mu and the shard are locked.
func (t *Tracker) close(e *Entry) {
	hash := t.hashOf(e)
	t.shard(hash).entries.remove(hash, e)
	e.add(e.counter.close())
	t.accepting.Add(-1)
	e.life = closing
}

// forget stops tracking e, which must be closing. Tracker.mu is held.
func (t *Tracker) forget(e *Entry) {
	e.life = forgotten
	t.words.release(&e.key)
	if t.closed.n > 0 && t.closed.remove(t.hashOf(e), e) {
		t.closing.Add(-1)
	}
	t.classify(e)
	t.sched.Remove(e)
	t.settle(e)
}

// lose drops what the server does not know of e, which must be closing, and
// forgets it. If the server has refused e, that is the reason, and not the given
// one. Tracker.mu is held.
func (t *Tracker) lose(e *Entry, reason DropReason, drops *[]Drop) {
	if e.phase == refused {
		reason = e.extra.refusal
	}
	s := t.drain(e)
	lost := e.lost()
	s.mu.Unlock()
	if lost > 0 {
		*drops = append(*drops, Drop{Reason: reason, Key: e.Key(), Note: e.spec.note, Count: lost})
	}
	t.forget(e)
}

// discard ends an entry that accepts occurrences without another write. Tracker.mu
// is held.
func (t *Tracker) discard(e *Entry, reason DropReason, drops *[]Drop) {
	s := t.drain(e)
	t.close(e)
	s.mu.Unlock()
	t.lose(e, reason, drops)
}

// forgetSilent forgets e if it was restored and has not occurred since, and
// reports whether that is so. All that is known of it was in an Event that is gone.
// To create that again would bring back what somebody has deleted, or what ended
// long ago. Tracker.mu is held.
func (t *Tracker) forgetSilent(e *Entry, drops *[]Drop) bool {
	s := t.drain(e)
	// An occurrence from here on would not be noticed.
	e.add(e.counter.close())
	if !e.spec.silent {
		s.open(e)
		s.mu.Unlock()
		return false
	}
	if e.life == accepting {
		t.close(e)
	}
	s.mu.Unlock()
	t.lose(e, "", drops) // the server knew all of it
	return true
}
