package tracker

import (
	"slices"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Changed says that the server has not made w because somebody else has written to
// the Event in the meantime: another process that shares its series with this one,
// such as the leader after it or before it. again is true if there is a write to
// make then, which is to look at what has become of it. If it is false, w is to be
// tried again.
func (t *Table) Changed(e *Entry, w Write) (again bool, eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if e.done {
		return false, eff
	}
	if w.before != "" {
		t.lookForChanges(e)
		return t.next(e, &eff), eff
	}
	t.file(e)
	t.boundClosing(&eff)
	return false, eff
}

// lookForChanges has e look at its own Event before it writes to it again. The
// table is locked.
func (t *Table) lookForChanges(e *Entry) {
	e.meeting = &meeting{step: WriteLook, name: e.name(), changed: true}
}

// isSame reports whether found, which may be nil, is the Event that e has written
// to before. The table is locked.
func (t *Table) isSame(e *Entry, found *series.Series) bool {
	k := e.Key()
	if found == nil || !t.isOf(&k, found) {
		return false
	}
	t.shard(e.hash).mu.Lock()
	defer t.shard(e.hash).mu.Unlock()
	return found.First.UnixMicro() == e.first && found.Instance == e.instance()
}

// merge takes into e what others have written to its Event since: their
// occurrences are added to its own, so that nothing of either is undone. The table
// is locked.
//
// It cannot be told how much of found is theirs if an answer to e was lost, and they
// have written before e has looked. What was lost is counted twice then.
func (t *Table) merge(e *Entry, found *series.Series, now time.Time, eff *Effects) {
	s := t.lock(e)
	theirs := int64(found.Count) - int64(e.wroteN)
	if slices.Contains(e.shared.tried, attempt{count: found.Count, last: found.Last.UnixMicro()}) {
		theirs = 0 // it was this process, and the answer was lost
	}
	if theirs > 0 {
		e.raise(theirs)
	}
	e.revision++
	if theirs > 0 && e.detached && e.state == series.Finished && found.State == series.Ongoing {
		// It is quiet here, but not there.
		e.state = series.Ongoing
	}
	e.meeting = nil
	e.shared.knows(found.Version)
	e.wroteN, e.wroteAs = found.Count, found.State
	e.wroteLast = max(e.wroteLast, found.Last.UnixMicro())
	e.wrote, e.flushTo = 0, e.revision
	if found.Count >= e.count && found.State == e.state {
		e.wrote = e.revision // there is nothing to add
	}
	s.mu.Unlock()
	if e.beat == (booking{}) {
		t.plan(e) // perhaps it was a singleton, and others have made a series of it
	}
	if found.State.Closed() && !e.detached {
		// It is over. What occurs from now on is something new.
		t.end(e, found.State, t.offset(now), eff)
	}
}
