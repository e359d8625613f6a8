package tracker

import (
	"encoding/json"
	"hash/fnv"
	"math"
	"time"

	"github.com/eventseries/eventseries/internal/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// Kind says what a write is for.
type Kind uint8

const (
	none       Kind = iota
	Create          // creates the Event
	Recreate        // creates the Event again because it expired or was deleted
	MakeSeries      // turns a singleton into a series
	Heartbeat       // updates the count of an ongoing series
	Finish          // writes the last count of a series that is Finished or Unknown
	FlushCount      // updates the count because someone waits for that
	Look            // changes nothing; the response is the Event that has a name
	Close           // closes the Event of an earlier process as Finished
	Signpost        // makes the Event under the base name lead to the Ongoing one
	Kinds           // the number of kinds
)

var kindNames = [Kinds]string{"none", "create", "recreate", "series", "heartbeat", "finish", "flush", "look", "close", "successor"}

// String returns the name of the kind in lower case.
func (k Kind) String() string { return kindNames[k] }

// Write is one request to be made: what [Tracker.Next] wants the server to know.
// The caller passes it to [Tracker.Apply] with the result.
type Write struct {
	// Kind says what the write is for.
	Kind Kind
	// Series is the series at the time of Next. Its namespace and name are those of
	// the Event that the request is for, and its Version is the resourceVersion that
	// this Event must have, if any.
	Series series.Series

	entry    *Entry
	pass     heartbeat.Pass
	patch    []byte        // if it is not that of Series
	revision revision      // of the spec
	at       time.Duration // when Next returned it

	// What the Event with Version of Series says.
	state     series.State
	heartbeat time.Duration
	managed   bool

	// Whether that Event may have another latest note, or lack annotations.
	renoted, reannotated bool
}

// Creates reports whether the request creates Series.Event. Otherwise it applies
// [Write.Patch].
func (w *Write) Creates() bool { return w.Kind == Create || w.Kind == Recreate }

// WritesSeries reports whether the request creates or updates the Event of the
// series, and not only prepares that or points to it.
func (w *Write) WritesSeries() bool { return w.Kind < Look }

// Patch returns the JSON merge patch to send.
func (w *Write) Patch() ([]byte, error) {
	if w.patch != nil {
		return w.patch, nil
	}
	s := w.Series
	if s.Version != "" && !w.renoted {
		s.LastNote = ""
	}
	if s.Version != "" && !w.reannotated {
		s.Annotations = nil
	}
	return s.PatchSince(&series.Series{State: w.state, Heartbeat: w.heartbeat, Managed: w.managed})
}

// need returns the kind of the next write of e, or none. Tracker.mu is held.
func (e *Entry) need() Kind {
	st := &e.status
	switch {
	case e.life == forgotten:
		return none
	case e.phase == claiming:
		return e.extra.claim.step
	case e.phase == conflicted:
		return Look
	case e.phase == refused && st.beatDue && e.life == accepting:
		return Create
	case e.phase == refused:
		return none
	case e.phase == unwritten && st.existed:
		return Recreate
	case e.phase == unwritten:
		return Create
	case e.spec.state != st.state && e.spec.state.Closed():
		return Finish
	case e.spec.state != st.state:
		return MakeSeries
	case st.beatDue:
		return Heartbeat
	case st.flush:
		return FlushCount
	case st.signpost && e.spec.state == series.Ongoing && e.baseOwner() == ownerUnknown:
		return Look
	case st.signpost && e.spec.state == series.Ongoing:
		return Signpost
	default:
		return none
	}
}

// signposts reports whether the next write, if any, is about the Event under the
// base name of a series whose own Event is up to date.
func (e *Entry) signposts() bool {
	kind := e.need()
	return e.phase == live && (kind == Look || kind == Signpost)
}

// normalSlack is how much later than a Warning a Normal is due, so Warnings go
// first until Normals have waited this long. See heartbeat.Schedule.Ready.
const normalSlack = 5 * time.Minute

// schedule puts e where it belongs after a change: into the list of its eviction
// class, and into the schedule. Tracker.mu is held.
func (t *Tracker) schedule(e *Entry, at time.Duration) {
	t.classify(e)
	kind := e.need()
	deadline := e.last() + t.opts.FinishAfter
	if (kind == none || e.signposts()) && e.spec.state == series.Ongoing {
		deadline = min(deadline, e.status.beatAt)
	}
	switch {
	case e.life == forgotten:
		t.sched.Remove(e)
	case kind == none:
		t.sched.Wait(e, deadline)
	case e.extra != nil && e.extra.notBefore != 0 && e.extra.notBefore > at:
		retry := e.extra.notBefore
		if e.life == accepting {
			retry = min(retry, deadline)
		}
		t.sched.Retry(e, retry, at)
	case t.hurried && e.failures() > 0:
		// Others of the namespace go first: they show whether the server denies this one
		// alone, before giveUp drops all of them.
		t.sched.Ready(e, at+2*normalSlack, false, at)
	case kind == Heartbeat && t.interval(e) < t.opts.HeartbeatInterval:
		t.sched.Ready(e, at+t.interval(e), false, at)
	case kind == Heartbeat && e.failures() == 0:
		// Half of FinishAfter before others take the series for stale.
		t.sched.Ready(e, e.status.at+t.opts.HeartbeatInterval+t.opts.FinishAfter/2, true, at)
	case kind == Heartbeat:
		// A retry gets a later deadline: heartbeats that always fail must not hold up
		// others. Without a deadline it would wait behind all that is ready, until its
		// Event expires.
		t.sched.Ready(e, at+normalSlack, true, at)
	case e.isWarning() && (e.life != closing || !e.spec.silent):
		t.sched.Ready(e, at, false, at)
	default:
		// A Normal, or a series of an earlier process that is only to be closed.
		t.sched.Ready(e, at+normalSlack, false, at)
	}
}

// advanceBatch bounds how many deadlines Advance handles under one lock.
const advanceBatch = 256

// Advance handles the deadlines up to now: heartbeats become due, quiet series
// end, writes that have failed can be retried, and names are forgotten.
func (t *Tracker) Advance(now time.Time) (drops []Drop) {
	at := t.offset(now)
	batch := func() (more bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tombstones.expire(at)
		for range advanceBatch {
			e, ok := t.sched.Due(at)
			if !ok {
				return false
			}
			t.tick(e, at, &drops)
			if e.life != forgotten {
				t.schedule(e, at)
			}
		}
		return true
	}
	for batch() {
	}
	return drops
}

// tick ends e if it has been quiet for FinishAfter, and otherwise says that its
// heartbeat is due if that is so. A write that waits already makes a heartbeat
// superfluous. Tracker.mu is held.
func (t *Tracker) tick(e *Entry, at time.Duration, drops *[]Drop) {
	switch {
	case e.life != accepting:
	case at-e.last() >= t.opts.FinishAfter:
		t.end(e, series.Finished, at, drops)
	case e.spec.state != series.Ongoing || e.phase != live && e.phase != refused:
	case at < e.status.beatAt || e.need() != none && !e.signposts():
	default:
		e.status.beats = min(e.status.beats, math.MaxUint8-1) + 1
		if next := at + t.interval(e); next < e.status.at+t.opts.HeartbeatInterval && !t.hasNews(e) {
			e.status.beatAt = next // an early heartbeat that says nothing new
			return
		}
		e.status.beatDue = true
	}
}

// hasNews reports whether the server does not know the spec of e. Tracker.mu is held.
func (t *Tracker) hasNews(e *Entry) bool {
	defer t.drain(e).mu.Unlock()
	return e.spec.revision != e.status.revision
}

// spreadFrom is the number of ongoing series up to which their heartbeats come
// exactly an interval after the last write. So few need not be spread.
const spreadFrom = 8

// planBeat decides when the next heartbeat of e is due, which the server has just
// accepted or refused. Whatever the write was for, it carried the latest count.
// Tracker.mu is held.
func (t *Tracker) planBeat(e *Entry) {
	e.status.beatDue = false
	interval := t.interval(e)
	e.status.beatAt = e.status.at + interval
	if interval == t.opts.HeartbeatInterval && t.ongoing() > spreadFrom {
		e.status.beatAt = t.jitter(e, e.status.beatAt)
	}
}

// interval returns the time from a write of e to the next heartbeat.
func (t *Tracker) interval(e *Entry) time.Duration { return t.opts.intervals().After(e.status.beats) }

// jitter returns when a heartbeat of e is due that would be due at latest. The name of
// the Event, which contains a hash of the key, and the wall clock determine the phase, so
// a restarted process keeps it: new phases would double the heartbeats of the first
// interval. Tracker.mu is held.
func (t *Tracker) jitter(e *Entry, latest time.Duration) time.Duration {
	hash := fnv.New64a()
	hash.Write([]byte(e.baseName()))
	epoch := time.Duration(t.epoch.UnixNano())
	return t.opts.intervals().Jitter(latest+epoch, hash.Sum64()) - epoch
}

// Wake returns the time from which Advance has something to do if nothing else
// happens before, and the time from which Next can have a write, or Admit a pass if
// admit is true. Each is zero if there is none.
func (t *Tracker) Wake(now time.Time, admit bool) (advance, next time.Time) {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	due, ok := t.sched.NextDue()
	if expires, holds := t.tombstones.expires(); holds && (!ok || expires < due) {
		due, ok = expires, true
	}
	if ok {
		advance = now.Add(due - at)
	}
	if request, ok := t.sched.NextRequest(at, admit); ok {
		next = now.Add(request - at)
	}
	return advance, next
}

// Next returns the write to make next. ok is false if there is none, or if all must
// wait because of a pause or a missing permission; see [Tracker.Wake]. A series
// has one write in flight at a time.
func (t *Tracker) Next(now time.Time) (w *Write, drops []Drop, ok bool) {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		e, pass, ok := t.sched.Next(at)
		if !ok {
			return nil, drops, false
		}
		if w, ok = t.start(e, pass, now, &drops); ok {
			return w, drops, true
		}
	}
}

// Abandon says that the request of w does not end in time. Its series has to wait
// for it, because what it does late must not follow what is newer; nothing else
// has to.
func (t *Tracker) Abandon(w *Write, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sched.InFlight(w.entry) { // otherwise the response has just arrived
		t.sched.Abandon(&w.pass, heartbeat.Failed, 0, t.offset(now))
	}
}

// Admit asks for the right to make a request that belongs to no series, such as a
// list. If ok, the caller must call [Tracker.Return]; otherwise the server is
// paused.
func (t *Tracker) Admit(now time.Time) (p heartbeat.Pass, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sched.Admit(t.offset(now))
}

// Return says what became of a request that [Tracker.Admit] permitted.
func (t *Tracker) Return(p heartbeat.Pass, r Result, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sched.Return(p, r.Outcome.forGate(), r.RetryAfter, t.offset(now))
}

// start returns the write of an entry that has just been put in flight. ok is
// false if there is none after all. Tracker.mu is held.
func (t *Tracker) start(e *Entry, pass heartbeat.Pass, now time.Time, drops *[]Drop) (w *Write, ok bool) {
	at := t.offset(now)
	t.tick(e, at, drops)
	kind := e.need()
	w = &Write{Kind: kind, entry: e, pass: pass, at: at}
	if kind != none {
		t.snapshot(w, now)
	}
	if e.phase == refused && kind == Create && w.Series.Count < 2 {
		// A patch cannot make a series of one occurrence. Wait for the next heartbeat,
		// as if the server had refused this one.
		e.status.at = at
		t.planBeat(e)
		kind = none
	}
	if kind == none {
		t.sched.Done(e, pass, heartbeat.None, 0, at)
		t.conclude(e, at, drops)
		return nil, false
	}
	if !e.status.named {
		t.nameEntry(e, at)
	}
	w.Series.Name = e.name()
	switch kind {
	case Look:
		w.patch = []byte("{}")
		if e.phase == live {
			w.Series.Name = e.baseName()
		} else {
			w.Series.Name = e.extra.claim.name
		}
	case Close:
		w.Series.Name, w.Series.Version = e.extra.claim.name, versionText(e.extra.claim.version)
		w.patch = metadataPatch(w.Series.Version, "labels", series.LabelState, series.Finished.String())
	case Signpost:
		// The time makes each renewal a change. The server neither writes nor renews
		// the TTL for a patch that changes nothing.
		w.Series.Name, w.Series.Version = e.baseName(), versionText(e.extra.base)
		w.patch = metadataPatch(w.Series.Version, "annotations", series.AnnotationSuccessor, e.name()+" "+now.UTC().Format(time.RFC3339Nano))
	default:
		e.status.last = w.Series.Last.UnixMicro()
		if !w.Creates() && e.status.version != 0 {
			w.Series.Version, w.state, w.managed = versionText(e.status.version), e.status.state, e.managed
			if e.status.promised {
				w.heartbeat = t.opts.promise()
			}
		}
	}
	t.classify(e)
	return w, true
}

// snapshot copies the spec of the entry of w. Tracker.mu is held.
func (t *Tracker) snapshot(w *Write, now time.Time) {
	e := w.entry
	defer t.drain(e).mu.Unlock()
	// The latest occurrence is reckoned back from now, so a wall clock that was set
	// right since is believed; but a time that the server knows, or may know, is not
	// taken back. An occurrence at this very moment may be in the time and not in
	// the count; then it is in the count of the next write.
	last := now.Add(e.last() - t.offset(now)).UnixMicro()
	if e.spec.silent {
		last = e.status.last
	}
	last = max(last, e.status.last, e.spec.first)
	if t.opts.Scope == SameController && e.spec.state != series.Singleton && !e.spec.silent {
		last = t.marked(last, max(e.status.last, e.spec.first))
	}
	w.revision = e.spec.revision
	if w.WritesSeries() {
		w.renoted, w.reannotated = e.spec.renoted, e.spec.reannotated
		e.spec.renoted, e.spec.reannotated = false, false // unless the patch fails
	}
	w.Series = series.Series{
		Key:         e.Key(),
		State:       e.spec.state,
		Instance:    e.instance(),
		Note:        e.spec.note,
		LastNote:    e.spec.lastNote(),
		Annotations: e.spec.annotations(),
		First:       time.UnixMicro(e.spec.first),
		Last:        time.UnixMicro(last),
		Count:       e.spec.count,
	}
	if e.spec.state == series.Ongoing && e.life == accepting {
		w.Series.Heartbeat = t.opts.promise()
	}
	w.Series.Namespace = t.namespace(&w.Series.Key)
}

// markRange is the number of microseconds that can name a process.
const markRange = 1000

// marked returns a time within a millisecond of last, and not before atLeast: whole
// milliseconds after the epoch, and as many microseconds as the mark of t says. If a
// response is lost, and another process has counted the same until the same time, its
// write would otherwise look like that of t. All times are in microseconds.
func (t *Tracker) marked(last, atLeast int64) int64 {
	since := last - t.epoch.UnixMicro() - t.mark
	last -= (since%markRange + markRange) % markRange // since can be negative
	if last < atLeast {
		last += markRange
	}
	return last
}

// metadataPatch returns the JSON merge patch that sets one label or annotation of an
// Event, which must have the given version unless that is empty.
func metadataPatch(version, field, key, value string) []byte {
	metadata := map[string]any{field: map[string]string{key: value}}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err) // strings can always be marshaled
	}
	return patch
}
