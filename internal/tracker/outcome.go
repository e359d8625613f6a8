package tracker

import (
	"math"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Written says that the server has taken w, which was no WriteLook. again is true
// if e has changed in the meantime so that there is another write to make.
func (t *Table) Written(e *Entry, w Write, now time.Time) (again bool, eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if e.done {
		return false, eff
	}
	switch w.Kind {
	case WriteClose:
		t.meetNext(e)
		return t.next(e, &eff), eff
	case WriteSuccessor:
		e.wantSuccessor = false
		t.closed.hold(t.nameHashOf(e), t.offset(now)+t.untilExpired(), ownerUs)
		return t.next(e, &eff), eff
	default: // it was about the series itself
	}
	e.exists, e.existed = true, true
	e.vacated = false
	e.refusal = nil
	e.wrote = w.revision
	e.wroteAt = t.offset(now)
	e.wroteAs = w.Series.State
	e.wroteN = w.Series.Count
	if e.shared != nil {
		e.shared.knows(w.Version)
	}
	if e.wantBeat && e.beats < math.MaxUint16 {
		e.beats++
	}
	// Whatever it was written for, it had the latest count in it.
	e.wantBeat = false
	t.plan(e)
	// Where a process that is started again would look, it is led to this Event;
	// and the signpost is kept from expiring.
	if e.uniqueNames > 0 && e.wroteAs == series.Ongoing && w.Kind != WriteFlush {
		t.wantSuccessor(e, e.wroteAt)
	}
	if e.detached {
		t.holdBaseName(e, e.wroteAt)
	}
	return t.next(e, &eff), eff
}

// next sees to e after a request of it has ended, and reports whether there is
// another to make. The table is locked.
func (t *Table) next(e *Entry, eff *Effects) (again bool) {
	again = e.need() != writeNothing
	if e.detached && !again {
		if e.refusal != nil {
			t.lose(e, "", eff)
			return false
		}
		t.forget(e)
		return false
	}
	t.file(e)
	t.boundClosing(eff)
	return again
}

// Gone says that the Event which w was to change, or to look at, is not on the
// server any more. again is true if there is a write to make then: mostly, that
// is to create it anew.
func (t *Table) Gone(e *Entry, w Write) (again bool, eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if e.done {
		return false, eff
	}
	switch w.Kind {
	case WriteSuccessor:
		t.noSignpost(e)
	case WriteClose:
		t.meetNext(e)
	case WriteLook:
		switch {
		case e.meeting == nil:
			t.noSignpost(e)
		case e.meeting.changed:
			e.meeting = nil
			return t.vanished(e)
		case w.Series.Name == e.name() && !e.vacated:
			// It has just made room, so the name can be had. If that is not so, the
			// server is not asked a second time: this would never end.
			e.meeting = nil
			e.vacated = true
		default:
			t.meetNext(e)
		}
	default:
		return t.vanished(e)
	}
	return t.next(e, &eff), eff
}

// vanished says that the Event of e is gone. The table is locked.
func (t *Table) vanished(e *Entry) (again bool, eff Effects) {
	if t.forgetSilent(e, &eff) {
		return false, eff
	}
	e.exists = false
	e.wrote, e.wroteN = 0, 0
	return t.next(e, &eff), eff
}

// noSignpost says that no Event has the base name: there is nobody to lead on, and
// the name is free for what comes later. The table is locked.
func (t *Table) noSignpost(e *Entry) {
	e.wantSuccessor = false
	e.base = ownerUnknown
	t.closed.release(t.nameHashOf(e))
}

// Taken says that w could not create its Event, since another has its name. The
// next step is to look at that.
func (t *Table) Taken(e *Entry, w Write, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	// Nobody knows when the other was written, so reckon with the latest.
	t.holdBaseName(e, t.offset(now))
	e.meeting = &meeting{step: WriteLook, name: w.Series.Name}
	t.file(e)
}

// Failed says that w has not been made, or that nobody knows. It is to be tried
// again.
func (t *Table) Failed(e *Entry, w Write) (eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if w.before != "" && !e.done {
		// Perhaps it has been made. If it was sent again with more, nobody could tell
		// it from what others write.
		e.shared.remember(attempt{count: w.Series.Count, last: w.Series.Last.UnixMicro()})
		t.lookForChanges(e)
	}
	t.file(e)
	t.boundClosing(&eff)
	return eff
}

// Refuse says that the server does not take w and would not take it if it was
// sent again. What the server does not know of e is lost.
//
// A series that takes occurrences goes on to do so, without any write, and is
// tried again with its next heartbeat: a hot loop of events that are refused is
// to cost no more than one of events that are not. again is true if there is
// another write to make: what was refused was not about the series itself. If w
// was a WriteLook, that should not be at once.
func (t *Table) Refuse(e *Entry, w Write, reason DropReason, now time.Time) (again bool, eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if e.done {
		return false, eff
	}
	switch w.Kind {
	case WriteLook:
		if e.meeting != nil {
			if e.meeting.unseen++; e.meeting.unseen < maxLooks {
				return t.next(e, &eff), eff
			}
			if e.meeting.changed {
				// It cannot go on there without undoing what others have written.
				e.meeting = nil
				break
			}
		}
		// Whatever stands there, it is not to be had.
		if w.Series.Name == e.baseName() {
			e.base = ownerOther
			t.closed.belongs(t.nameHashOf(e), ownerOther)
		}
		if e.meeting == nil {
			e.wantSuccessor = false
		} else {
			t.meetNext(e)
		}
		return t.next(e, &eff), eff
	case WriteClose:
		t.meetNext(e)
		return t.next(e, &eff), eff
	case WriteSuccessor:
		e.wantSuccessor = false
		return t.next(e, &eff), eff
	default: // it was about the series itself
	}
	if e.detached {
		e.refusal = &reason
		t.lose(e, "", &eff)
		return false, eff
	}
	s := t.lock(e)
	if lost := e.lost(); lost > 0 {
		eff.Dropped = append(eff.Dropped, Drop{Reason: reason, Key: e.Key(), Note: e.note, Count: lost})
	}
	e.count = 0
	e.state = series.Ongoing
	e.wrote = e.revision
	s.open(e)
	s.mu.Unlock()
	e.refusal = &reason
	if e.existed {
		// An Event with the counts so far stands there. What comes now is
		// counted anew, and in another.
		t.holdBaseName(e, t.offset(now))
		t.renameEntry(e)
	}
	e.exists, e.existed = false, false
	if e.wantBeat && e.beats < math.MaxUint16 {
		e.beats++ // so that early heartbeats come to an end here as well
	}
	e.wantBeat = false
	e.wroteAt, e.wroteN = t.offset(now), 0
	t.plan(e)
	t.file(e)
	return false, eff
}
