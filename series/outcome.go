package series

import (
	"math"
	"time"
)

// Written says that the server has taken w. again is true if e has changed in
// the meantime so that there is another write to make.
func (t *Table) Written(e *Entry, w Write, now time.Time) (again bool, eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if e.done {
		return false, eff
	}
	e.exists, e.existed = true, true
	e.refusal = ""
	e.wrote = w.revision
	e.wroteAt = t.offset(now)
	e.wroteAs = w.Series.State
	e.wroteN = w.Series.Count
	e.wroteLast = w.Series.Last.UnixMicro()
	if e.wantBeat && e.beats < math.MaxUint16 {
		e.beats++
	}
	// Whatever it was written for, it had the latest count in it.
	e.wantBeat = false
	if e.detached {
		t.holdBaseName(e, e.wroteAt)
	}
	again = e.need() != writeNothing
	if e.detached && !again {
		t.forget(e)
		return false, eff
	}
	t.file(e)
	t.boundClosing(&eff)
	return again, eff
}

// Gone says that the Event which w was to change is not on the server any more.
// The next write creates it anew.
func (t *Table) Gone(e *Entry, _ Write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	e.exists = false
	e.wrote, e.wroteN = 0, 0
	t.file(e)
}

// Taken says that w could not create its Event, since another has its name. The
// next write takes another name.
func (t *Table) Taken(e *Entry, _ Write, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	// Nobody knows when the other was written, so reckon with the latest.
	t.holdBaseName(e, t.offset(now))
	t.nameEntry(e, true)
	t.file(e)
}

// Failed says that w has not been made, or that nobody knows. It is to be tried
// again.
func (t *Table) Failed(e *Entry, _ Write) (eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	t.file(e)
	t.boundClosing(&eff)
	return eff
}

// Refuse says that the server does not take w and would not take it if it was
// sent again. What the server does not know of e is lost.
//
// A series that takes occurrences goes on to do so, without any write, and is
// tried again with its next heartbeat: a hot loop of events that are refused is
// to cost no more than one of events that are not.
func (t *Table) Refuse(e *Entry, _ Write, reason DropReason, now time.Time) (eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if e.done {
		return eff
	}
	if e.detached {
		e.refusal = reason
		t.lose(e, "", &eff)
		return eff
	}
	s := e.shard
	s.mu.Lock()
	if lost := e.lost(); lost > 0 {
		eff.Dropped = append(eff.Dropped, Drop{Reason: reason, Key: e.key, Note: e.note, Count: lost})
	}
	e.count = 0
	e.state = Ongoing
	e.wrote = e.revision
	s.mu.Unlock()
	e.refusal = reason
	if e.existed {
		// An Event with the counts so far stands there. What comes now is
		// counted anew, and in another.
		t.holdBaseName(e, t.offset(now))
		t.nameEntry(e, true)
	}
	e.exists, e.existed = false, false
	if e.wantBeat && e.beats < math.MaxUint16 {
		e.beats++ // so that early heartbeats come to an end here as well
	}
	e.wantBeat = false
	e.wroteAt, e.wroteN = t.offset(now), 0
	t.file(e)
	return eff
}
