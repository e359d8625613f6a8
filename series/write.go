package series

import (
	"fmt"
	"time"
)

// WriteKind says what a write is for.
type WriteKind uint8

const (
	writeNothing WriteKind = iota
	// WriteCreate makes the Event.
	WriteCreate
	// WriteRecreate makes it anew after the server has lost it: it expired, or
	// was deleted.
	WriteRecreate
	// WriteSeries turns a singleton into a series.
	WriteSeries
	// WriteHeartbeat tells the count of a series that goes on.
	WriteHeartbeat
	// WriteFinish tells the last count of a series that is Finished or Unknown.
	WriteFinish
	// WriteFlush tells the count because somebody asked for it.
	WriteFlush
	// WriteKinds is the number of kinds, and one more than the largest.
	WriteKinds
)

var writeKindNames = [WriteKinds]string{"nothing", "create", "recreate", "series", "heartbeat", "finish", "flush"}

// String returns the name of the kind in lower case.
func (k WriteKind) String() string {
	if int(k) < len(writeKindNames) {
		return writeKindNames[k]
	}
	return fmt.Sprintf("WriteKind(%d)", uint8(k))
}

// Write is one write to be made: what a series was when Begin looked at it.
// What became of it must be told to the table, by Written, Gone, Taken, Failed
// or Refuse, before Begin is called for the same entry again.
type Write struct {
	// Kind says what the write is for.
	Kind WriteKind
	// Series is what is to be written.
	Series Series

	revision uint64
}

// Creates reports whether the write is a create, of Series.Event. Otherwise it
// is a patch, of Series.Patch.
func (w *Write) Creates() bool { return w.Kind == WriteCreate || w.Kind == WriteRecreate }

// need says which write e waits for. The table is locked.
func (e *Entry) need() WriteKind {
	switch {
	case e.done:
		return writeNothing
	case e.refusal != "":
		// It is tried once in a heartbeat, as a series: a patch cannot make a
		// series of one occurrence.
		if e.wantBeat && e.state == Ongoing {
			return WriteCreate
		}
		return writeNothing
	case !e.exists && e.existed:
		return WriteRecreate
	case !e.exists:
		return WriteCreate
	case e.state.Closed() && e.state != e.wroteAs:
		return WriteFinish
	case e.state != e.wroteAs:
		return WriteSeries
	case e.wantBeat:
		return WriteHeartbeat
	case e.wrote < e.flushTo:
		return WriteFlush
	default:
		return writeNothing
	}
}

// Begin looks at e as it is now and returns what is to be written. ok is false
// if there is nothing. A series whose window has passed is ended on the way.
// One write of an entry may be under way at a time.
func (t *Table) Begin(e *Entry, now time.Time) (w Write, eff Effects, ok bool) {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !e.done && !e.detached && e.state == Ongoing && at-t.last(e) >= t.opts.Window {
		t.end(e, Finished, at, &eff)
	}
	kind := e.need()
	if kind == writeNothing {
		if e.detached && !e.done {
			// It ended while it was tried again after a refusal, and that
			// did not succeed. Otherwise there is nothing to lose.
			t.lose(e, "", &eff)
		}
		return Write{}, eff, false
	}

	s := e.shard
	s.mu.Lock()
	snapshot := Series{
		Key:         e.key,
		State:       e.state,
		Note:        e.note,
		LastNote:    e.lastNote,
		Annotations: e.annotations,
		First:       time.UnixMicro(e.first),
		Count:       e.count,
	}
	// Reckoned back from now, so that a wall clock that was set right since is
	// believed; but what the server has been told is not taken back.
	last := now.Add(e.last - at).UnixMicro()
	w = Write{Kind: kind, revision: e.revision}
	s.mu.Unlock()

	if e.refusal != "" && snapshot.Count < 2 {
		// As if it had been refused again: the next heartbeat would be due at
		// once otherwise, and so would the one after that.
		e.wantBeat = false
		e.wroteAt = at
		t.file(e)
		return Write{}, eff, false
	}
	if e.name == "" {
		t.nameEntry(e, t.closed.taken(e.key.Hash(), at))
	}
	snapshot.Name = e.name
	snapshot.Namespace = t.namespace(&e.key)
	snapshot.Last = time.UnixMicro(max(last, e.wroteLast, e.first))
	w.Series = snapshot
	e.inFlight = true
	t.file(e)
	return w, eff, true
}

// Single returns the series that one occurrence is on its own, under the base
// name of its key. It does not take the occurrence in.
func (t *Table) Single(k *Key, o Occurrence, now time.Time) Series {
	return Series{
		Key:         *k,
		Namespace:   t.namespace(k),
		Name:        k.BaseName(),
		Note:        o.Note,
		Annotations: o.Annotations,
		First:       now,
		Last:        now,
		Count:       1,
	}
}

// namespace returns where the Event of a key is.
func (t *Table) namespace(k *Key) string {
	if k.Regarding.Namespace != "" {
		return k.Regarding.Namespace
	}
	return t.opts.ClusterNamespace
}

// nameEntry gives e the base name, or the next unique one. The table is locked.
func (t *Table) nameEntry(e *Entry, unique bool) {
	if !unique {
		e.name = e.key.BaseName()
		return
	}
	e.name = e.key.UniqueName(time.UnixMicro(e.first), e.uniqueNames)
	e.uniqueNames++
}

// holdBaseName remembers that the base name of e is taken if e has it. The table
// is locked.
//
// The server is in no hurry to collect: kube-apiserver lets Events of about the
// same age share a lease, so some stay a little longer than their time.
func (t *Table) holdBaseName(e *Entry, at time.Duration) {
	if e.uniqueNames == 0 {
		t.closed.add(e.key.Hash(), at+t.opts.EventTTL+t.opts.EventTTL/8)
	}
}
