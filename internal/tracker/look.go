package tracker

import (
	"cmp"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// isPossible reports whether times and count of found can be true. Many occurrences can come together,
// but no more than one in each microsecond, the precision of the times, for longer than a second.
func isPossible(found *series.Series, now time.Time) bool {
	lasts := found.Last.Sub(found.First)
	return found.First.Sub(now) <= series.ClockSkew && found.Last.Sub(now) <= series.ClockSkew && lasts >= 0 &&
		time.Duration(found.Count)*time.Microsecond <= time.Second+min(lasts, series.MaxDuration)
}

// isOf reports whether an Event with a name of k is the Event of k: it has the key, or a sign of this
// project. The name has a hash of the key, and webhooks and people can change the other fields.
func (r *rules) isOf(k *series.Key, event *eventsv1.Event, found *series.Series) bool {
	for _, names := range []map[string]string{event.Labels, event.Annotations} {
		for name := range names {
			if strings.HasPrefix(name, series.AnnotationPrefix) {
				return true
			}
		}
	}
	key := found.Key
	key.Note = k.Note
	if r.opts.Shared {
		key.ReportingInstance = ""
	}
	return key == *k
}

// found decides what the Event with the name of e is to e: its own, that of its key, or that of a
// stranger, which keeps its name. Then e takes the next one; nothing else changes the name of a
// series. ok is false if strangers have all names.
func (e *Entry) found(s *step, w *Write, event *eventsv1.Event) (ok bool) {
	var found *series.Series // nil if the answer is no Event of a series
	if event != nil && event.Name == w.Series.Name && event.Namespace == w.Series.Namespace {
		found = read(event)
	}
	// Who has begun an Event, or has written to it, knows it by its first time. If a wall clock was set since, times can seem impossible.
	isOwn := found != nil && !e.isNew() && e.isFirst(found.First)
	switch {
	case e.silent && !isOwn:
		e.gone(s) // somebody has replaced it
	case isOwn, found != nil && s.isOf(&w.Series.Key, event, found) && isPossible(found, s.now):
		s.adopted = !e.hadEvent() && e.attempts == nil
		e.merge(s, found)
	default:
		e.gone(s)
		if e.salt == series.Salts {
			return false
		}
		e.salt++
	}
	return true
}

// read returns the series that an Event describes, nil if it describes none. An odd state is none. If nothing else
// says when it occurred first, firstTimestamp does.
func read(event *eventsv1.Event) *series.Series {
	event = event.DeepCopy()
	if began := series.EventTime(event); began.IsZero() {
		event.EventTime.Time = event.DeprecatedFirstTimestamp.Time
	}
	found, err := series.FromEvent(event)
	if err != nil {
		delete(event.Labels, series.LabelState)
		found, _ = series.FromEvent(event)
	}
	return found
}

// isFirst reports whether the first occurrence of e was at a time, which has the precision of firstTimestamp if
// it is a whole second.
func (e *Entry) isFirst(at time.Time) bool {
	first := at.UnixMicro()
	return first == e.first || at.Nanosecond() == 0 && first == time.UnixMicro(e.first).Truncate(time.Second).UnixMicro()
}

// merge makes found the Event of e. What others have counted is added, so nothing of either
// is lost, and the count never goes down.
func (e *Entry) merge(s *step, found *series.Series) {
	counted, at, isResult := e.partOf(s, found)
	s.theirs = max(found.Count-counted, 0)
	switch {
	case s.theirs == 0:
	case counted == 0:
		e.continueFrom(s, found)
		e.leave(s, found)
	default:
		e.leave(s, found)
		e.share(s, found)
	}
	e.add(s.theirs)
	if e.lastNote == "" {
		e.lastNote = strings.Clone(found.LastNote)
	}
	e.stored = stored{
		version: versionNumber(found.Version), at: at, last: found.Last.UnixMicro(), count: found.Count, state: found.State, stale: e.compare(s.rules, found),
	}
	e.becomeLive()
	e.planBeat(s)
	if e.unstored() > 0 && !isResult {
		e.beatAt = min(e.beatAt, s.at) // what is stored may be half an hour old
	}
}

// partOf returns how many occurrences of found e has counted, and when they were written. isResult
// reports whether found is the result of an attempt.
//
// If a response was lost, and others have written before e looks, it cannot tell whether
// the server has stored the attempt before that. It assumes that it has not, so the
// occurrences that are new in that attempt can count twice.
func (e *Entry) partOf(s *step, found *series.Series) (counted int32, at time.Duration, isResult bool) {
	counted, at = e.stored.count, e.stored.at
	if found.Last.UnixMicro() != e.stored.last {
		at = min(s.offsetOf(found.Last), s.at) // the write cannot be older
	}
	if !e.isFirst(found.First) { // another process has begun it
		return 0, at, false
	}
	if result, ok := e.attempted(s.rules, found); ok {
		return found.Count, result.at, true
	}
	if counted == 0 && e.attempts != nil && found.Instance == e.key.shared.reporter && found.Count >= e.attempts.first.count {
		counted = e.attempts.first.count // the create was stored, and others have written since
	}
	return counted, at, false
}

// continueFrom says that e continues the series of an earlier process.
func (e *Entry) continueFrom(s *step, found *series.Series) {
	gap := time.Duration(e.first-found.Last.UnixMicro()) * time.Microsecond
	longest, unwritten := s.opts.MaxWindow, time.Duration(0)
	if found.State == series.Ongoing { // after its window, it has probably recurred in between
		longest, unwritten = found.QuietWindow(), cmp.Or(found.Heartbeat, series.DefaultHeartbeat)
	}
	if gap <= longest {
		s.window.Observe(&e.rhythm, gap, e.last)
	}
	switch {
	case e.count > 1:
	case e.isEmpty():
		e.state = found.State
	case gap-unwritten > s.opts.MaxWindow, e.life == over:
		e.state = series.Finished
		e.life = max(e.life, over)
	case e.life == closing:
		e.state = series.Unknown
	default:
		e.state = series.Ongoing
	}
	if e.lastNote == "" {
		e.lastNote = e.note
	}
	e.first, e.note = found.First.UnixMicro(), strings.Clone(found.Note)
	e.annotations = mergeAnnotations(mergeAnnotations(nil, found.Annotations), e.annotations)
}

// share says that another process has counted occurrences of e since the latest write of
// e. The process with the latest occurrence decides about the state.
func (e *Entry) share(s *step, found *series.Series) {
	isLater := found.Last.UnixMicro() > s.wall(e.last) && found.Last.Sub(s.now) <= series.ClockSkew
	switch {
	case isLater && found.State.Closed():
		e.state, e.life = found.State, max(e.life, over)
	case e.life == active, e.life == over && s.at < e.leftAt():
		e.state, e.life = series.Ongoing, active
	case e.life == closing && isLater && found.State == series.Ongoing:
		e.state = series.Ongoing
	case e.life == over, e.state == series.Singleton:
		e.state = series.Finished
	}
}

// attempted returns the attempt that found results from. ok is false if there is none.
func (e *Entry) attempted(r *rules, found *series.Series) (a attempt, ok bool) {
	if e.attempts == nil {
		return attempt{}, false
	}
	first, latest, last := e.attempts.first, e.attempts.latest, found.Last.UnixMicro()
	switch {
	case found.Count == latest.count && last == latest.last:
		return latest, true
	case found.Count == first.count && last == first.last:
		return first, true
	case found.Count < first.count || found.Count > latest.count || last < first.last || last > latest.last,
		found.Count > 1 && e.isShared(r) && r.distance(last) != 0: // see marked
		return attempt{}, false
	default:
		return first, true
	}
}
