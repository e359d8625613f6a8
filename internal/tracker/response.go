package tracker

import (
	"math"
	"math/bits"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// Outcome says what became of a request.
type Outcome uint8

const (
	Written    Outcome = iota // the server has handled the request
	PushedBack                // the server asks all clients to slow down, and has not handled the request
	Troubled                  // the request failed; the server may have handled it or not
	Denied                    // credentials or permissions are missing, or not there yet
	Gone                      // the Event to patch does not exist
	Changed                   // the Event to patch has another version
	Taken                     // an Event with the name to create exists
	Refused                   // the server rejects the request
	Outcomes                  // the number of outcomes
)

var outcomeNames = [Outcomes]string{"written", "pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused"}

// String returns the name of the outcome.
func (o Outcome) String() string { return outcomeNames[o] }

// Handled reports whether the server has handled the request, and not failed it for a reason
// that can concern others.
func (o Outcome) Handled() bool {
	return results[o] != schedule.PushedBack && results[o] != schedule.Failed
}

// Result is the response to a [Write].
type Result struct {
	// Outcome says what became of the request.
	Outcome Outcome
	// Event is the Event that the server returned. It can be nil.
	Event *eventsv1.Event
	// RetryAfter is for how long the server wants no request; zero if it does not say.
	RetryAfter time.Duration
	// Reason says why the server rejects the request, if the outcome is Refused.
	Reason DropReason
	// Unsent says that a Troubled request certainly did not reach the server.
	Unsent bool
	// Local says that neither the server nor the network has caused a Troubled outcome, so a
	// retry probably does not help. Reason says why the request is given up after some.
	Local bool
}

// results are what the outcomes mean for other series. What they mean for their own, [Entry.respond]
// decides, and when it is given up, table.giveUp.
var results = [Outcomes]schedule.Result{
	Written: schedule.Passed, PushedBack: schedule.PushedBack, Troubled: schedule.Failed, Denied: schedule.Denied,
	Gone: schedule.Passed, Changed: schedule.Passed, Taken: schedule.Passed, Refused: schedule.Refused,
}

// response returns what the result means for the schedule.
func (r *Result) response() schedule.Response {
	return schedule.Response{Result: results[r.Outcome], Reason: uint8(r.Outcome), RetryAfter: r.RetryAfter}
}

// ofItself returns what the result means if the series alone is the cause. It waits for refusedWait, and
// twice as long after each further one in a row, until it takes as many requests as one that passes.
func (r *Result) ofItself() schedule.Response {
	return schedule.Response{Result: schedule.Refused, Reason: uint8(r.Outcome), Least: refusedWait, Most: series.DefaultHeartbeat}
}

// refusedWait is the delay after the server has refused a write.
const refusedWait = time.Minute

// localTries is how many Local failures in a row lose nothing: those until the delay is the longest, which
// take half an hour.
var localTries = uint8(bits.Len(uint(series.DefaultHeartbeat / refusedWait)))

// respond applies a response to e, and returns what it means for the schedule.
func (e *Entry) respond(s *step, w *Write, r *Result) schedule.Response {
	response := r.response()
	isLook := w.Kind == Look
	if isLook && r.Outcome.Handled() {
		e.looks = min(e.looks+1, math.MaxUint8-1)
	}
	switch {
	case r.Outcome == Written && !isLook:
		e.accepted(s, w, r.Event)
	case r.Outcome == Written && !e.found(s, w, r.Event):
		e.lose(s, DropNameTaken)
		return r.ofItself()
	case r.Outcome == Troubled:
		if !isLook && !r.Unsent {
			e.attempt(w)
		}
		if r.Local {
			e.failedLocally(s, r)
			return r.ofItself()
		}
	case r.Outcome == Denied:
		response.Least = e.denied(s, w)
	case r.Outcome == Gone:
		e.gone(s)
	case r.Outcome == Taken, r.Outcome == Changed:
		e.phase = looking
		if e.looks > 0 { // someone else is as fast, and this must not become a hot loop
			return schedule.Response{Result: schedule.Refused, Reason: uint8(r.Outcome), Least: schedule.Delay(e.looks + 1)}
		}
	case r.Outcome == Refused && !isLook && e.attempts != nil:
		e.phase = looking // what an attempt may have stored, a look says first
		return schedule.Response{Result: schedule.Passed}
	case r.Outcome == Refused:
		if !isLook {
			e.lose(s, r.Reason)
		}
		return r.ofItself()
	}
	return response
}

// failedLocally gives up what has failed Locally several times in a row.
func (e *Entry) failedLocally(s *step, r *Result) {
	before := uint8(0)
	if e.slot.Last == schedule.Refused && e.slot.Reason == uint8(Troubled) {
		before = e.slot.Alike
	}
	switch {
	case before >= localTries:
		e.lose(s, r.Reason)
	case before == localTries-1:
		e.phase = looking // the last try says what an attempt may have stored
	}
}

// denied says that the server denies a request, and returns for how long to wait.
//
// A process that may only create cannot know what has its name. After some looks it takes a name that
// nobody else has, so that nothing is lost. That nobody finds that Event is the lesser evil. An API server
// that has just started denies requests until it knows the roles, so the third look is a minute after the
// first.
func (e *Entry) denied(s *step, w *Write) (least time.Duration) {
	if w.Kind != Look || s.permits || e.stored.count > 0 {
		return 0
	}
	switch {
	case e.looks < schedule.FreeRetries:
		return refusedWait / 2
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
	if event == nil {
		event = &eventsv1.Event{}
	}
	e.stored = stored{
		version: versionNumber(event.ResourceVersion),
		at:      w.at,
		last:    w.Series.Last.UnixMicro(),
		count:   w.Series.Count,
		state:   w.Series.State,
		stale:   e.compare(s.rules, &w.Series),
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
	if text == "" {
		return 0 // without the allocation of an error
	}
	if version, err := strconv.ParseUint(text, 10, 64); err == nil {
		return version
	}
	return 0
}

func versionText(version uint64) string {
	if version == 0 {
		return ""
	}
	return strconv.FormatUint(version, 10)
}
