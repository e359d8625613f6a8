package tracker

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/eventseries/eventseries/series"
)

// need returns the kind of the next write of e, or none.
func (e *Entry) need() Kind {
	st := &e.status
	switch {
	case e.life == forgotten:
		return none
	case e.listing() != nil:
		return List
	case e.phase == claiming:
		return e.rare.claim.step
	case e.phase == conflicted:
		return Look
	case e.phase == refused && st.due.has(dueBeat) && e.life == accepting:
		return Create
	case e.phase == refused:
		return none
	case e.phase == unwritten && e.hasExisted():
		return Recreate
	case e.phase == unwritten:
		return Create
	case e.spec.state != st.state && e.spec.state.Closed():
		return Finish
	case e.spec.state != st.state:
		return MakeSeries
	case st.due.has(dueBeat):
		return Heartbeat
	case st.due.has(dueCount):
		return FlushCount
	case e.spec.state.Closed() && e.lost() > 0:
		return Finish // it has recurred and ended again while the last write was in flight
	case e.life == closing && e.lost() > 0:
		return FlushCount // it remains Ongoing in another process
	case st.due.has(dueLook):
		return Look
	case st.due.has(dueLead):
		return Signpost
	default:
		return none
	}
}

// isUpToDate reports whether the Event of e says what it should. At most the Event under
// the base name is to be written.
func (e *Entry) isUpToDate() bool {
	kind := e.need()
	return kind == none || e.phase == live && (kind == Look || kind == Signpost)
}

// isDone reports whether a series that has ended needs no place any more: the Event says
// all of it, or never will.
func (e *Entry) isDone() bool {
	return e.life == closing && (e.phase == refused || e.phase == live && e.status.state == e.spec.state && e.status.due&^dueNext == 0 && e.lost() == 0)
}

// plan says when the next thing is to be done about a series that is not in flight.
type plan struct {
	// at is until when it waits, or by when its request should be made if ready is true.
	at    time.Duration
	ready bool
	hard  bool // see heartbeat.Schedule.Ready
	held  bool // it waits, and has something to write
}

// normalSlack is how much later than a Warning a Normal is due, so Warnings go
// first until Normals have waited this long. See heartbeat.Schedule.Ready.
const normalSlack = 5 * time.Minute

// plan returns what is to be done next. In a shutdown, hurried is true.
func (e *Entry) plan(r *rules, at time.Duration, hurried bool) plan {
	kind := e.need()
	deadline := e.deadline(r, at)
	held, isHeld := e.hold().left(at)
	switch {
	case e.listing() != nil:
		if isHeld {
			return plan{at: held}
		}
		return plan{at: at - time.Hour, ready: true} // lists are rare, and there may always be other writes
	case kind == none:
		return plan{at: deadline}
	case isHeld:
		if e.life != closing {
			held = min(held, deadline)
		}
		return plan{at: held, held: true}
	case hurried && e.failures() > 0:
		// Others of the namespace go first: they show whether the server denies this one
		// alone, before giveUp drops all of them.
		return plan{at: at + 2*normalSlack, ready: true}
	case kind == Heartbeat && r.interval(e) < r.opts.HeartbeatInterval:
		return plan{at: at + r.interval(e), ready: true}
	case kind == Heartbeat && e.failures() == 0:
		// Half of the shortest window before readers take the series for stale, and before
		// the Event expires.
		slack := min(r.opts.FinishAfter, r.opts.EventTTL-r.opts.HeartbeatInterval) / 2
		return plan{at: e.status.at + r.opts.HeartbeatInterval + slack, ready: true, hard: true}
	case kind == Heartbeat:
		// A retry gets a later deadline: heartbeats that always fail must not hold up
		// others. Without a deadline it would wait behind all that is ready, until its
		// Event expires.
		return plan{at: at + normalSlack, ready: true, hard: true}
	case e.isWarning() && (e.life != closing || !e.silent):
		return plan{at: at, ready: true}
	default:
		// A Normal, or a series of an earlier process that is only to be closed.
		return plan{at: at + normalSlack, ready: true}
	}
}

// deadline returns when the next thing is to be done about a series that has nothing to
// write.
func (e *Entry) deadline(r *rules, at time.Duration) time.Duration {
	if e.life == resting {
		return e.last() + r.opts.MaxWindow
	}
	quiet := e.pace().due(r.opts.window(), e.last(), at)
	if e.isUpToDate() && e.spec.state == series.Ongoing {
		return min(quiet, e.status.beatAt)
	}
	return quiet
}

// isQuiet reports whether the series has been quiet for its window, so that it is over.
func (e *Entry) isQuiet(r *rules, at time.Duration) bool {
	return e.life == accepting && at-e.last() >= e.window(r)
}

// isOver reports whether an occurrence would begin another series.
func (e *Entry) isOver(r *rules, at time.Duration) bool {
	return at-e.last() >= r.opts.MaxWindow || e.phase == refused && e.isQuiet(r, at)
}

// isTheirs reports whether another process has the latest occurrence of an Ongoing series,
// and tends its Event. Times of two processes are the same within a second.
func (e *Entry) isTheirs(r *rules, at time.Duration) bool {
	theirs := e.pace().theirs
	return e.life == accepting && e.phase == live && e.status.state == series.Ongoing &&
		theirs != 0 && theirs > e.last()+time.Second && at-theirs < r.opts.HeartbeatInterval+e.window(r)
}

// rest says that the series is over, unless it recurs.
func (e *Entry) rest() {
	e.add(e.counter.close())
	e.life = resting
	e.finish(series.Finished)
}

// finish ends an Ongoing series in the given state.
func (e *Entry) finish(as series.State) {
	if e.spec.state == series.Ongoing && as != series.Ongoing {
		e.spec.state = as
		e.status.due &^= dueBase // only the Event of an Ongoing series is led to
		e.change()
	}
}

// compareEnded says that nothing is to be written of a series that has ended if another
// process, or a write whose response was lost, has written its count and its state. An
// update would only change who has said that, and another process that has counted the
// same would take that for occurrences of its own. No write may be in flight.
func (e *Entry) compareEnded() {
	st := &e.status
	if st.revision == 0 && e.phase == live && e.spec.state.Closed() && st.state == e.spec.state && e.lost() == 0 && !e.hasAttempts() {
		st.revision = e.spec.revision
		st.due &^= dueCount
	}
}

// tick handles the deadlines of e: a quiet series is over, and a heartbeat becomes due. A
// write that waits already makes a heartbeat superfluous.
func (e *Entry) tick(s *step) {
	if e.isQuiet(s.rules, s.at) {
		e.rest()
	}
	switch {
	case e.life != accepting || e.spec.state != series.Ongoing || e.phase != live && e.phase != refused:
	case s.at < e.status.beatAt || !e.isUpToDate():
	default:
		e.beat(s)
	}
}

// beat handles a heartbeat whose time has come. If nothing has occurred since the latest
// write, it is due with the next occurrence: it would change nothing, so the server would
// neither write it nor renew the TTL.
func (e *Entry) beat(s *step) {
	st := &e.status
	e.add(e.counter.close()) // for the next occurrence; the table opens it otherwise
	if !st.due.has(dueNext) {
		st.beats = min(st.beats, math.MaxUint8-1) + 1
	}
	switch next := s.at + s.interval(e); {
	case e.spec.revision != st.revision:
		st.due |= dueBeat
	case next < st.at+s.opts.HeartbeatInterval && e.phase == live:
		st.beatAt = next // an early heartbeat
	default:
		st.due, st.beatAt = st.due|dueNext, never
	}
}

// never is later than all times.
const never = time.Duration(math.MaxInt64)

// planBeat decides when the next heartbeat of e is due, which the server has just
// accepted. Whatever the write was for, it carried the latest count.
func (e *Entry) planBeat(s *step) {
	e.status.due &^= dueBeat | dueNext
	interval := s.interval(e)
	e.status.beatAt = e.status.at + interval
	if interval == s.opts.HeartbeatInterval && s.crowded {
		e.status.beatAt = s.jitter(e, e.status.beatAt)
	}
}

// interval returns the time from a write of e to the next heartbeat.
func (r *rules) interval(e *Entry) time.Duration { return r.opts.intervals().After(e.status.beats) }

// jitter returns when a heartbeat of e is due that would be due at latest. The name of
// the Event, which contains a hash of the key, and the wall clock determine the phase, so
// a restarted process keeps it: new phases would double the heartbeats of the first
// interval.
func (r *rules) jitter(e *Entry, latest time.Duration) time.Duration {
	hash := fnv.New64a()
	hash.Write([]byte(e.baseName()))
	epoch := time.Duration(r.epoch.UnixNano())
	return r.opts.intervals().Jitter(latest+epoch, hash.Sum64()) - epoch
}
