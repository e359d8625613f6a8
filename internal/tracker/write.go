package tracker

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/series"
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
	// WriteLook changes nothing, but has the server answer with the Event that has
	// the name. The answer is for Found.
	WriteLook
	// WriteClose closes the Event of an earlier process as Finished.
	WriteClose
	// WriteSuccessor leads from the Event under the base name to the one that is
	// Ongoing.
	WriteSuccessor
	// WriteKinds is the number of kinds, and one more than the largest.
	WriteKinds
)

var writeKindNames = [WriteKinds]string{"nothing", "create", "recreate", "series", "heartbeat", "finish", "flush", "look", "close", "successor"}

// String returns the name of the kind in lower case.
func (k WriteKind) String() string {
	if int(k) < len(writeKindNames) {
		return writeKindNames[k]
	}
	return fmt.Sprintf("WriteKind(%d)", uint8(k))
}

// Write is one write to be made: what a series was when Begin looked at it.
// What became of it must be told to the table, by Written (Found, if it is a
// WriteLook), Gone, Taken, Changed, Failed or Refuse, before Begin is called for the same
// entry again.
type Write struct {
	// Kind says what the write is for.
	Kind WriteKind
	// Series is what is to be written. Its name is that of the Event that the
	// write is to, whatever it is for.
	Series series.Series
	// Version is the resourceVersion that the Event has after the write. Whoever
	// makes the write fills it in before he tells the table, if he knows it. It is of
	// use where instances share their series.
	Version string

	patch []byte // if it is not that of Series
	// before is the resourceVersion that the Event must have for the write, if any.
	before string

	revision uint64
}

// Creates reports whether the write is a create, of Series.Event. Otherwise it
// is a patch, of Patch.
func (w *Write) Creates() bool { return w.Kind == WriteCreate || w.Kind == WriteRecreate }

// Patch returns the JSON merge patch to send, if the write is not a create. It is
// not always that of Series.
func (w *Write) Patch() ([]byte, error) {
	if w.patch != nil {
		return w.patch, nil
	}
	return w.Series.PatchOf(w.before)
}

// need says which write e waits for. The table is locked.
func (e *Entry) need() WriteKind {
	switch {
	case e.done:
		return writeNothing
	case e.meeting != nil:
		return e.meeting.step
	case e.refusal != nil:
		// It is tried once in a heartbeat, as a series: a patch cannot make a
		// series of one occurrence.
		if e.wantBeat && e.state == series.Ongoing {
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
	case e.wantSuccessor && e.state == series.Ongoing && e.base == ownerUnknown:
		return WriteLook
	case e.wantSuccessor && e.state == series.Ongoing:
		return WriteSuccessor
	default:
		return writeNothing
	}
}

// news reports whether the write that e waits for tells people something that
// they wait for. The table is locked.
func (e *Entry) news() bool {
	switch e.need() {
	case WriteHeartbeat, WriteFlush, WriteSuccessor:
		return false
	case WriteLook:
		return e.meeting != nil
	default:
		return true
	}
}

// waits reports whether a write that e waits for will tell all that a heartbeat
// would. The table is locked.
func (e *Entry) waits() bool {
	switch e.need() {
	case writeNothing, WriteSuccessor:
		return false
	case WriteLook:
		return e.meeting != nil
	default:
		return true
	}
}

// Begin looks at e as it is now and returns what is to be written. ok is false
// if there is nothing. A series whose window has passed is ended on the way.
// One write of an entry may be under way at a time.
func (t *Table) Begin(e *Entry, now time.Time) (w Write, eff Effects, ok bool) {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !e.done && !e.detached && e.state == series.Ongoing && at-e.last() >= t.opts.Window {
		t.end(e, series.Finished, at, &eff)
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

	s := t.lock(e)
	snapshot := series.Series{
		Key:         e.Key(),
		State:       e.state,
		Instance:    e.instance(),
		Note:        e.note,
		LastNote:    e.lastNote,
		Annotations: e.annotations,
		First:       time.UnixMicro(e.first),
		Count:       e.count,
	}
	// Reckoned back from now, so that a wall clock that was set right since is
	// believed; but what the server has been told, or may have been if an answer
	// was lost, is not taken back. What occurs at this moment may be in the time and
	// not in the count, and is in the next write.
	last := now.Add(e.last() - at).UnixMicro()
	if e.silent {
		last = e.wroteLast
	}
	w = Write{Kind: kind, revision: e.revision}
	s.mu.Unlock()

	if e.refusal != nil && kind == WriteCreate && snapshot.Count < 2 {
		// As if it had been refused again: the next heartbeat would be due at
		// once otherwise, and so would the one after that.
		e.wantBeat = false
		e.wroteAt = at
		t.plan(e)
		t.file(e)
		return Write{}, eff, false
	}
	if e.named {
		snapshot.Name = e.name()
	} else {
		snapshot.Name = t.nameEntry(e, at)
	}
	snapshot.Namespace = t.namespace(&snapshot.Key)
	snapshot.Last = time.UnixMicro(max(last, e.wroteLast, e.first))
	w.Series = snapshot
	switch kind {
	case WriteLook:
		w.Series.Name = snapshot.Key.BaseName()
		if e.meeting != nil {
			w.Series.Name = e.meeting.name
		}
		w.patch = []byte("{}")
	case WriteClose:
		w.Series.Name = e.meeting.name
		w.patch = annotationPatch(series.AnnotationState, series.Finished.String())
	case WriteSuccessor:
		w.Series.Name = snapshot.Key.BaseName()
		w.patch = annotationPatch(series.AnnotationSuccessor, snapshot.Name+" "+snapshot.First.UTC().Format(time.RFC3339Nano))
	default: // that of the series
		e.wroteLast = snapshot.Last.UnixMicro()
		if e.shared != nil && !w.Creates() {
			w.before = e.shared.version
		}
	}
	e.inFlight = true
	t.file(e)
	return w, eff, true
}

// Single returns the series that one occurrence is on its own, under the base
// name of its key. It does not take the occurrence in.
func (t *Table) Single(k *series.Key, o Occurrence, now time.Time) series.Series {
	return series.Series{
		Key:         *k,
		Instance:    o.Instance,
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
func (t *Table) namespace(k *series.Key) string {
	if k.Regarding.Namespace != "" {
		return k.Regarding.Namespace
	}
	return t.opts.ClusterNamespace
}

// nameEntry gives e its first name, and returns it: the base name, or a unique one if
// that is taken, or if an earlier entry has yet to write there. The table is locked.
func (t *Table) nameEntry(e *Entry, at time.Duration) string {
	k := e.Key()
	base := k.BaseName()
	if t.closed.taken(t.nameHashOf(e), at) || t.has(e.hash, &k, base, e) {
		return t.renameEntry(e)
	}
	e.named = true
	return base
}

// renameEntry gives e the next unique name, and returns it. The table is locked.
func (t *Table) renameEntry(e *Entry) string {
	// One that was adopted may have any of these names already.
	k := e.Key()
	for before := e.name(); ; {
		name := k.UniqueName(time.UnixMicro(e.first), int(e.uniqueNames))
		e.uniqueNames++
		if name != before {
			e.rename(name)
			return name
		}
	}
}

// holdBaseName remembers that the base name of e is taken if e has it. The table
// is locked.
func (t *Table) holdBaseName(e *Entry, at time.Duration) {
	if e.uniqueNames > 0 {
		return
	}
	by := ownerUnknown
	if e.exists {
		by = ownerUs
	}
	t.closed.hold(t.nameHashOf(e), at+t.untilExpired(), by)
}

// untilExpired is how long an Event stands after its last write.
//
// The server is in no hurry to collect: kube-apiserver lets Events of about the
// same age share a lease, so some stay a little longer than their time.
func (t *Table) untilExpired() time.Duration { return t.opts.EventTTL + t.opts.EventTTL/8 }
