package tracker

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/eventseries/eventseries/series"
	eventsv1 "k8s.io/api/events/v1"
)

// meeting is what an entry does about an Event that stands under the name which
// it wanted. It goes on until the entry has adopted that Event or has another
// name.
type meeting struct {
	// step is WriteLook, or WriteClose.
	step WriteKind
	// name of the Event to look at, or to close.
	name string
	// next is the name of the Event to look at after that, if any.
	next string
	// changed is set if the Event is the entry's own, and somebody else has written
	// to it, or may have.
	changed bool
	// unseen is how often the server has refused to show that Event.
	unseen int
}

// maxLooks is how often the server is asked to show an Event when it refuses to.
//
// What stands there may be the entry's own, if the answer to a create was lost.
// Then to go out of the way is to write everything a second time. And since a look
// asks for nothing that could be wrong, it is mostly something between here and
// the server that refuses it, for a while. But somebody else's Event must not hold
// a series up for ever.
const maxLooks = 3

// standing is what an Event that is on the server is to a series.
type standing uint8

const (
	// stranger is of another key, or claims what cannot be.
	stranger standing = iota
	// own was made by the entry itself; the answer was lost.
	own
	// alive is the same series, begun by an earlier process.
	alive
	// dead is an earlier series that has ended, or that nobody tends.
	dead
	// inUse is alive, and another entry of the table tends it.
	inUse
)

// clockSkew is how far ahead the clock of another process may be.
const clockSkew = time.Minute

// judge says what found is to the series of key k: a stranger, alive or dead.
func (t *Table) judge(k *series.Key, found *series.Series, now time.Time) standing {
	switch {
	case !t.isOf(k, found):
		return stranger
	case found.First.Sub(now) > clockSkew || found.Last.Sub(now) > clockSkew || found.Last.Before(found.First):
		return stranger
	case t.tended(found, now):
		return alive
	default:
		return dead
	}
}

// isOf reports whether found is of key k and could have been written for it.
func (t *Table) isOf(k *series.Key, found *series.Series) bool {
	return t.keyOf(found) == *k && found.Namespace == t.namespace(k) && k.Named(found.Name)
}

// judgeFor says what found is to e, own included. The table is locked.
func (t *Table) judgeFor(e *Entry, found *series.Series, now time.Time) standing {
	s := t.lock(e)
	// It is not ours alone any more if it tells of more than e does: then
	// somebody else went on with it, or e has begun to count anew.
	mine := found.First.UnixMicro() == e.first && found.Instance == e.instance() && found.Count <= e.count
	s.mu.Unlock()
	k := e.Key()
	if mine && t.isOf(&k, found) {
		return own
	}
	return t.judge(&k, found, now)
}

// tended reports whether somebody is likely to follow the series that found
// tells of, or has only just ceased to. The server knows the last occurrence of
// a running series as of its last heartbeat.
func (t *Table) tended(found *series.Series, now time.Time) bool {
	switch found.State {
	case series.Singleton:
		return now.Sub(found.First) < t.opts.Window
	case series.Ongoing:
		return now.Sub(found.Last) < t.opts.Heartbeat+t.opts.Window
	default:
		return false
	}
}

// Found takes in the Event that the server answered to w, which was a WriteLook.
// An Event that is the entry's own, or that of the same series in an earlier
// process, is adopted: its count is the base on which the entry goes on.
// Otherwise the entry takes another name, perhaps after one step more. again is
// true if there is a write to make then.
func (t *Table) Found(e *Entry, w Write, event *eventsv1.Event, now time.Time) (again bool, eff Effects) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.inFlight = false
	if e.done {
		return false, eff
	}
	what := stranger
	var found *series.Series
	if event != nil && event.Name == w.Series.Name {
		var err error
		if found, err = series.FromEvent(event); err == nil {
			what = t.judgeFor(e, found, now)
		}
	}
	k := e.Key()
	if w.Series.Name == k.BaseName() {
		e.base = ownerUs
		if what == stranger {
			e.base = ownerOther
		}
		t.closed.belongs(t.nameHashOf(e), e.base)
	}
	if what == alive && t.has(e.hash, &k, found.Name, e) {
		what = inUse
	}
	if e.meeting != nil && e.meeting.changed {
		if t.isSame(e, found) {
			t.merge(e, found, now, &eff)
			return !e.done && t.next(e, &eff), eff
		}
		// What is there now has taken the place of that Event, which is gone.
		e.meeting.changed = false
		e.exists = false
		e.wrote, e.wroteN = 0, 0
	}
	switch {
	case e.meeting == nil:
		// It wanted to know whether it may lead from there to its own Event.
		e.wantSuccessor = e.base == ownerUs
	case what == own:
		t.adopt(e, found, false, t.offset(now))
		t.plan(e)
	case what == alive:
		t.adopt(e, found, true, t.offset(now))
		t.plan(e)
		t.adopted.Add(1)
	case what == stranger || what == inUse:
		e.meeting.next = ""
		t.meetNext(e)
	case what == dead:
		// Only the Event under the base name leads on, and only to one of the same
		// key, so this comes to an end.
		next, _, _ := strings.Cut(event.Annotations[series.AnnotationSuccessor], " ")
		if found.Name != k.BaseName() || next == found.Name || !k.Named(next) {
			next = ""
		}
		e.meeting.next = next
		if found.State == series.Ongoing && !t.has(e.hash, &k, found.Name, e) {
			// Nobody else would close it. One that another entry tends only looks
			// dead, because the server has heard nothing of it for long.
			e.meeting.step = WriteClose
			break
		}
		t.meetNext(e)
	}
	return t.next(e, &eff), eff
}

// meetNext goes on to the next Event of a meeting, or ends it by going out of
// the way if there is none. The table is locked.
func (t *Table) meetNext(e *Entry) {
	if next := e.meeting.next; next != "" {
		e.meeting = &meeting{step: WriteLook, name: next}
		return
	}
	e.meeting = nil
	t.renameEntry(e)
}

// adopt makes found the Event of e. base says whether its occurrences are others
// than those that e has counted. The table is locked.
func (t *Table) adopt(e *Entry, found *series.Series, base bool, at time.Duration) {
	s := t.lock(e)
	defer s.mu.Unlock()
	if base {
		e.raise(int64(found.Count))
		if e.state == series.Singleton && e.detached {
			e.state = series.Finished
		} else if e.state == series.Singleton {
			e.state = series.Ongoing
			s.open(e)
		}
		if e.lastNote == "" {
			e.lastNote = e.note
		}
		e.note = found.Note
	}
	e.first = found.First.UnixMicro()
	if e.shared != nil {
		e.shared.instance = found.Instance
		e.shared.knows(found.Version)
	}
	theirs := found.Annotations
	if size(theirs) > series.MaxAnnotationBytes {
		theirs = nil // somebody else's, for the most part; they stay where they are
	}
	e.annotations = mergeAnnotations(theirs, e.annotations)
	e.revision++
	e.meeting = nil
	e.vacated = false
	e.refusal = nil
	e.rename(found.Name)
	if e.uniqueName == nil {
		e.uniqueNames = 0
	} else {
		e.uniqueNames = max(e.uniqueNames, 1)
		// Whoever led here may have done so long ago.
		t.wantSuccessor(e, at)
	}
	e.exists, e.existed = true, true
	e.wroteAt = at
	e.wroteLast = found.Last.UnixMicro()
	e.wroteAs = found.State
	e.wroteN = found.Count
	if !base && found.Count == e.count && found.State == e.state {
		e.wrote = e.revision
		return
	}
	// What the server knows of a series that was adopted may be half an hour old.
	// It is told at once, or the next process would take the series for dead.
	e.wrote, e.flushTo = 0, e.revision
}

// wantSuccessor has the Event under the base name lead to that of e, unless it is
// known to be a stranger's. If it is not known whose it is, that is found out
// first. The table is locked.
func (t *Table) wantSuccessor(e *Entry, at time.Duration) {
	if e.base == ownerUnknown {
		e.base = t.closed.owner(t.nameHashOf(e), at)
	}
	e.wantSuccessor = e.base != ownerOther
}

// annotationPatch returns the JSON merge patch that sets one annotation.
func annotationPatch(key, value string) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		panic(err) // strings can always be marshalled
	}
	return patch
}
