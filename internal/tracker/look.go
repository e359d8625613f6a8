package tracker

import (
	"cmp"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// maxRate is how many occurrences a second are possible.
const maxRate = 1_000_000

// isPossible reports whether times and count of found can be true.
func isPossible(found *series.Series, now time.Time) bool {
	return found.First.Sub(now) <= series.ClockSkew && found.Last.Sub(now) <= series.ClockSkew && !found.Last.Before(found.First) &&
		int64(found.Count) <= maxRate*(1+int64(found.Last.Sub(found.First)/time.Second))
}

// isOf reports whether found is the Event of k. Its name is known to be right.
func (r *rules) isOf(k *series.Key, found *series.Series) bool {
	key := found.Key
	key.Note = k.Note
	if r.opts.Scope == SameController {
		key.ReportingInstance = ""
	}
	return key == *k && found.Namespace == r.namespace(k)
}

// found decides what the Event with the name of e is to e: its own, or that of a stranger,
// which has another key, or contains what cannot be true. A stranger keeps its name, and e
// takes the next one. Nothing else changes the name of a series.
func (e *Entry) found(s *step, w *Write, event *eventsv1.Event) {
	var found *series.Series // nil if the answer is no Event of a series
	if event != nil && event.Name == w.Series.Name {
		found, _ = series.FromEvent(event)
	}
	if e.silent && (found == nil || !e.began(found)) {
		e.gone(s) // somebody has replaced it
		return
	}
	if k := e.Key(); found != nil && s.isOf(&k, found) && (e.began(found) || isPossible(found, s.now)) {
		s.adopted = e.stored.last == 0 && e.attempts == nil
		e.merge(s, found)
		return
	}
	if e.gone(s); !s.isOver && e.salt < series.Salts {
		e.salt++
	}
}

// began reports whether e has begun found, or has written to it. If a wall clock was set since,
// times can seem impossible.
func (e *Entry) began(found *series.Series) bool {
	return !e.isNew() && found.First.UnixMicro() == e.first
}

// merge makes found the Event of e. What others have counted is added, so nothing of either
// is lost, and the count never goes down.
//
// If a response was lost, and others have written before e looks, merge cannot tell whether
// the server has stored the attempt before that. It assumes that it has not, so the
// occurrences that are new in that attempt can count twice.
func (e *Entry) merge(s *step, found *series.Series) {
	last := found.Last.UnixMicro()
	isFirst := found.First.UnixMicro() == e.first
	a, isAttempt := e.attempted(s.rules, found)
	isAttempt = isAttempt && isFirst
	st := stored{version: versionNumber(found.Version), at: e.stored.at, last: last, count: found.Count, state: found.State}
	switch {
	case isAttempt:
		st.at = a.at
		e.stored.count = found.Count // all of it is counted
	case !isFirst && e.stored.count > 0: // somebody has replaced the Event
		e.stored.count = 0
	case isFirst && e.stored.count == 0 && e.attempts != nil && found.Instance == e.key.shared.reporter && found.Count >= e.attempts.first.count:
		e.stored.count = e.attempts.first.count // the create was stored, and others have written since
	}
	if last != e.stored.last && !isAttempt {
		st.at = min(s.offsetOf(found.Last), s.at) // the write cannot be older
	}
	theirs := max(found.Count-e.stored.count, 0)
	if e.stored.count == 0 && theirs > 0 {
		e.continueFrom(s, found)
	} else if theirs > 0 {
		e.share(s, found)
	}
	e.add(theirs)
	s.theirs = theirs
	if e.lastNote == "" {
		e.lastNote = strings.Clone(found.LastNote)
	}
	st.stale = e.compare(s.rules, found)
	e.stored = st
	e.becomeLive()
	e.planBeat(s)
	if e.lost() > 0 && !isAttempt {
		e.beatAt = min(e.beatAt, s.at) // what is stored may be half an hour old
	}
}

// continueFrom says that e continues the series of an earlier process.
func (e *Entry) continueFrom(s *step, found *series.Series) {
	gap := time.Duration(e.first-found.Last.UnixMicro()) * time.Microsecond
	longest := s.opts.MaxWindow
	if found.State == series.Ongoing {
		longest = found.QuietWindow() // after that, it has probably recurred in between
	}
	if gap <= longest {
		s.windowOf(e).Observe(&e.rhythm, gap, e.last)
	}
	if found.State == series.Ongoing {
		gap -= cmp.Or(found.Heartbeat, series.DefaultHeartbeat)
	}
	s.windowOf(e).Remember(&e.rhythm, found.QuietWindow(), s.at)
	switch {
	case e.count > 1:
	case e.count == 0: // the server has refused what has occurred here
		e.state = found.State
	case gap <= s.opts.MaxWindow && e.life == active:
		e.state = series.Ongoing
	default:
		e.state = series.Finished
		if e.life == active {
			e.life = over
		}
	}
	if e.lastNote == "" {
		e.lastNote = e.note
	}
	e.first, e.note = found.First.UnixMicro(), strings.Clone(found.Note)
	e.annotations = mergeAnnotations(mergeAnnotations(nil, found.Annotations), e.annotations)
}

// share says that another process has counted occurrences of e since the latest write of
// e. The process with the latest occurrence decides about the state, so the series is over
// here if that is not this one.
func (e *Entry) share(s *step, found *series.Series) {
	switch isLater := found.Last.UnixMicro() > s.wall(e.last) && found.Last.Sub(s.now) <= series.ClockSkew; {
	case isLater && found.State != series.Singleton:
		e.state = found.State
		e.life = max(e.life, over)
	case e.life == active:
		e.state = series.Ongoing
	default:
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
