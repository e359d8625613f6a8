package tracker

import (
	"cmp"
	"hash/fnv"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// rules are what the series of a tracker have in common. They never change.
type rules struct {
	opts   Options
	epoch  time.Time // from which times that are durations count
	mark   int64     // see marked
	window heartbeat.Window
	gap    time.Duration // a shorter one between two occurrences changes no window
}

// offset returns the time since the epoch.
func (r *rules) offset(now time.Time) time.Duration { return now.Sub(r.epoch) }

// wall returns the wall time of a time since the epoch, in microseconds since 1970. It counts back
// from now, so a wall clock that was set right since is believed.
func (s *step) wall(at time.Duration) int64 { return s.now.Add(at - s.at).UnixMicro() }

// offsetOf is the inverse of wall.
func (s *step) offsetOf(wall time.Time) time.Duration { return s.at - s.now.Sub(wall) }

// namespace returns where the Event of a key is.
func (r *rules) namespace(k *series.Key) string {
	return cmp.Or(k.Regarding.Namespace, r.opts.ClusterNamespace)
}

// step is one step of a series: its input, and its effects on the table.
type step struct {
	*rules
	table *table // which the series only reads
	now   time.Time
	at    time.Duration // now, since the epoch

	wasOngoing bool // when the step began

	lost    int        // occurrences that are lost
	reason  DropReason // why
	isOver  bool       // there is nothing left to do for the series
	theirs  int32      // occurrences that others have counted
	adopted bool       // the series continues in the Event of an earlier process
}

// need returns the kind of the next write of e, or none.
func (e *Entry) need(at time.Duration) Kind {
	st := &e.stored
	switch {
	case e.isEmpty():
		return none
	case e.phase == looking:
		return Look
	case e.phase == unwritten && e.hadEvent():
		return Recreate
	case e.phase == unwritten:
		return Create
	case e.state != st.state && e.state == series.Ongoing:
		return MakeSeries
	case e.state != st.state, e.state != series.Ongoing && e.unstored() > 0:
		return Finish
	case e.unstored() > 0 && (e.life != active || at >= e.beatAt && !e.waits || e.attempts != nil): // with attempts, it is unknown what is stored
		return Heartbeat
	default:
		return none
	}
}

// due returns by when a write should be made. Warnings go first, until others have waited for most of
// the time for which the server keeps an Event. A heartbeat waits like a Normal that occurred a little
// before the latest write, so no flood of Normals lets the Event expire.
func (e *Entry) due(r *rules, kind Kind, at time.Duration) time.Duration {
	switch {
	case kind == Heartbeat:
		return max(at, e.stored.at+r.opts.EventTTL*5/8)
	case e.isWarning() && !e.silent:
		return at
	default: // a Normal, or a series of an earlier process that is only to be finished
		return at + r.opts.EventTTL*3/4
	}
}

// deadline returns when to look at a series that has nothing to write.
func (e *Entry) deadline(r *rules, at time.Duration) time.Duration {
	if e.life != active {
		return e.expires(r)
	}
	quiet := max(r.window.Due(e.rhythm, e.last, at), e.leftAt())
	if e.isOngoing() && e.phase == live && at < e.beatAt {
		return min(quiet, e.beatAt)
	}
	return quiet
}

// expires returns when the server deletes the Event, or when a series without one is forgotten.
func (e *Entry) expires(r *rules) time.Duration {
	if e.phase == live {
		return e.stored.at + r.opts.EventTTL
	}
	return e.last + r.opts.EventTTL
}

// tick handles the deadlines of e. A series is over when it has been quiet for its window, and for its heartbeat and its
// window where another process has written it.
func (e *Entry) tick(s *step) {
	if e.life == active && s.at >= e.leftAt() && s.at-e.last >= s.window.Of(e.rhythm, e.last) {
		e.finish(series.Finished)
	}
	if e.life != active && e.need(s.at) == none {
		s.isOver = e.life == closing || s.at >= e.expires(s.rules)
	}
}

// isEnding reports whether the heartbeat of e is due while e has been quiet for longer than between any two occurrences
// in its window. Then it probably ends, and one write can contain the count and the end.
func (e *Entry) isEnding(s *step) bool {
	window := s.window.Of(e.rhythm, e.last)
	return e.isOngoing() && e.phase == live && s.at >= e.beatAt && s.at-e.last > window/21*10 && max(e.last+window, e.leftAt()) < e.expires(s.rules)
}

// isFresh reports whether an occurrence is written at once: the heartbeat is overdue, for there
// was no news, or due within a quarter of its interval, and would contain nothing newer.
func (e *Entry) isFresh(at time.Duration) bool {
	quarter := (e.beatAt - e.stored.at) / 4
	return at >= e.beatAt && e.unstored() == 0 || at < e.beatAt && at >= e.beatAt-quarter && at-e.last >= quarter
}

// planBeat decides when the next heartbeat of e is due: an interval after the latest write that the server
// has stored. One that is shorter than the Event needs is for readers, who see when the latest occurrence
// was: it begins there, but at most a quarter earlier, so few are more frequent.
func (e *Entry) planBeat(s *step) {
	interval := heartbeat.Interval(s.opts.FirstHeartbeat, s.opts.HeartbeatInterval, e.beats)
	e.beatAt, e.waits = e.stored.at+interval, false
	if s.opts.HeartbeatInterval < s.opts.EventTTL/2 {
		old := e.stored.at - s.offsetOf(time.UnixMicro(e.stored.last))
		e.beatAt -= min(max(old, 0), interval/4)
	}
	if interval == s.opts.HeartbeatInterval && s.table.ongoing > s.opts.Workers { // not all can be in flight together
		// The name of the Event, which contains a hash of the key, and the wall clock determine the phase, so a
		// restarted process keeps it: new phases would double the heartbeats of the first interval.
		hash, k := fnv.New64a(), e.Key()
		hash.Write([]byte(e.name(&k)))
		epoch := time.Duration(s.epoch.UnixNano())
		e.beatAt = spread(e.beatAt+epoch, interval, hash.Sum64()) - epoch
	}
}

// spread returns when a heartbeat is due that would be due at latest, so that series which begin
// together do not send their heartbeats together: at a phase of the interval, which must be positive,
// that follows from hash. The result is at most interval before latest and never after it. Consecutive
// heartbeats of one series keep the phase, so only the interval after a write at another time is shorter.
func spread(latest, interval time.Duration, hash uint64) time.Duration {
	phase := time.Duration(hash % uint64(interval))
	early := (latest - phase) % interval // negative before the epoch
	return latest - (early+interval)%interval
}
