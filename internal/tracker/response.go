package tracker

import (
	"math"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// Response is the response to a [Write].
type Response struct {
	// Outcome says what became of the request.
	Outcome schedule.Outcome
	// Event is the Event that the server returned. It can be nil.
	Event *eventsv1.Event
	// Pause is for how long the server wants no request of the namespace; zero if it does not say.
	Pause time.Duration
	// Never says why no request for the Event can succeed. If empty, one can.
	Never DropReason
	// MayBeStored says that the server can have stored a write that has failed.
	MayBeStored bool
}

// reasons say why a series is given up whose latest request has had an outcome.
var reasons = [schedule.Outcomes]DropReason{
	schedule.Refused: DropRejected, schedule.Denied: DropDenied, schedule.PushedBack: DropUnavailable, schedule.Troubled: DropUnavailable,
}

// respond applies a response to e, and returns what it means for the schedule.
func (e *Entry) respond(s *step, w *Write, r *Response) schedule.Answer {
	answer := schedule.Answer{Outcome: r.Outcome, Pause: r.Pause}
	isLook := w.Kind == Look
	if isLook && r.Outcome.Handled() {
		e.looks = min(e.looks+1, math.MaxUint8-1)
	}
	if r.MayBeStored && !isLook {
		e.attempt(w)
	}
	switch {
	case r.Never != "":
		e.lose(s, r.Never)
	case r.Outcome == schedule.Written && !isLook:
		e.accepted(s, w, r.Event)
	case r.Outcome == schedule.Written && !e.found(s, w, r.Event):
		e.lose(s, DropNameTaken)
		answer.Outcome = schedule.Refused
	case r.Outcome == schedule.Denied:
		answer.Delay = e.denied(s, w)
	case r.Outcome == schedule.Gone:
		e.gone(s)
	case r.Outcome == schedule.Taken, r.Outcome == schedule.Changed:
		e.phase = looking
		if e.looks > 0 { // someone else is as fast, and this must not become a hot loop
			answer.Delay = schedule.Troubled.Delay(e.looks + 1)
		}
	}
	return answer
}

// denied says that the server denies a request, and returns for how long to wait. If zero, that follows from the
// number of failures.
//
// A process that may only create cannot know what has its name. If a second look is denied as well, the series takes a name that
// nobody else has, so that nothing is lost. That nobody finds that Event is the lesser evil. An API server that has just started
// denies requests until it knows the roles, so the second look comes a minute later.
func (e *Entry) denied(s *step, w *Write) (delay time.Duration) {
	if w.Kind != Look || s.table.known[e.Namespace()].permits || e.stored.count > 0 {
		return 0
	}
	switch {
	case e.looks < 2:
		return schedule.RefusedFirst
	case e.salt < series.Salts:
		e.salt = series.Salts
		e.becomeUnwritten()
	case e.attempts == nil:
		e.lose(s, DropNameTaken)
		e.becomeUnwritten()
	default: // nobody else has this name, so the server has stored an attempt
		a := e.attempts.first
		e.stored.at, e.stored.last, e.stored.count = a.at, a.last, a.count
		if a.count > 1 {
			e.stored.state = e.state
		}
		e.becomeLive()
	}
	return 0
}

// accepted says that the server has stored a write.
func (e *Entry) accepted(s *step, w *Write, event *eventsv1.Event) {
	e.stored = stored{at: w.at, last: w.Series.Last.UnixMicro(), count: w.Series.Count, state: w.Series.State, stale: e.compare(s.rules, &w.Series)}
	if event != nil {
		e.stored.version = versionNumber(event.ResourceVersion)
	}
	e.becomeLive()
	e.looks = 0
	if w.Kind == Heartbeat {
		e.beats = min(e.beats, math.MaxUint8-1) + 1
	}
	e.planBeat(s)
}

func (e *Entry) becomeLive() { e.phase, e.attempts = live, nil }

// becomeUnwritten says that no Event has the name of e.
func (e *Entry) becomeUnwritten() {
	e.phase, e.attempts = unwritten, nil
	e.stored.version, e.stored.count, e.stored.state = 0, 0, series.Singleton
}

// gone says that the Event of e does not exist. A silent series is forgotten: to create its Event again
// would bring back what somebody has deleted, or what ended long ago.
func (e *Entry) gone(s *step) {
	if e.silent {
		s.isOver = true
		return
	}
	e.becomeUnwritten()
}

// lose says that what the server does not store of e is lost. If an attempt is stored
// nevertheless, a look adds what it contains.
func (e *Entry) lose(s *step, reason DropReason) {
	s.lost, s.reason = s.lost+e.unstored(), reason
	e.count, e.attempts = e.stored.count, nil
	switch {
	case e.count < 2:
		e.state = series.Singleton
	case e.life == active:
		e.state = e.stored.state
	}
	s.isOver = s.isOver || e.life == closing
}

// versionNumber returns a resourceVersion as a number: zero if it is not decimal, as those of the API
// server are.
func versionNumber(text string) uint64 {
	if version, err := strconv.ParseUint(text, 10, 64); err == nil {
		return version
	}
	return 0
}
