package tracker

import (
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/heartbeat"
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
	Refused                   // the server rejects the request, and would reject it again
	Outcomes                  // the number of outcomes
)

var outcomeNames = [Outcomes]string{"written", "pushedBack", "troubled", "denied", "gone", "changed", "taken", "refused"}

// String returns the name of the outcome.
func (o Outcome) String() string { return outcomeNames[o] }

// Result is the response to a [Write].
type Result struct {
	// Outcome says what became of the request.
	Outcome Outcome
	// Event is the Event that the server returned. It can be nil.
	Event *eventsv1.Event
	// RetryAfter is for how long the server wants no request; zero if it does not
	// say.
	RetryAfter time.Duration
	// Reason says why the server rejects the request, if the outcome is Refused.
	Reason DropReason
	// Unsent says that a Troubled request certainly did not reach the server.
	Unsent bool
	// Listed says more about the response to a list.
	Listed Listed
}

// forGate returns what the outcome says about the gates that the request passed.
func (o Outcome) forGate() heartbeat.Result {
	switch o {
	case PushedBack:
		return heartbeat.PushedBack
	case Troubled:
		return heartbeat.Failed
	case Denied:
		return heartbeat.Denied
	default:
		return heartbeat.Passed
	}
}

func (e *Entry) respond(s *step, w *Write, r *Result) {
	if r.Outcome != Written {
		e.status.unsaid |= w.unsaid
	}
	failures := e.failures()
	switch r.Outcome {
	case PushedBack:
		// The gate of the server makes the entry wait.
	case Troubled, Denied:
		if r.Outcome == Troubled && !r.Unsent && w.WritesSeries() {
			e.attempt(w)
		}
		if e.phase == claiming && w.Kind == Look && r.Outcome == Denied {
			e.unseen(s) // a role that only permits creates
		}
		if r.Outcome == Denied && e.hold().why < denial {
			failures = min(failures, failuresBefore) // there were no denials
		}
		e.setFailures(s.rules, failures+1, s.at)
		if r.Outcome == Denied {
			e.more().hold.extend(s.at+s.backoffDenied(failures+1), denial)
		}
	default:
		wasRefused := e.wasRefused()
		e.decided(s, w, r)
		switch {
		case s.forget:
		case e.phase == refused:
			if !wasRefused {
				failures = 0
			}
			e.setFailures(s.rules, failures+1, s.at)
			e.more().hold.extend(s.at+min(refusedFirst<<min(failures, 10), s.opts.HeartbeatInterval), backoff)
			e.status.beatAt = e.rare.hold.until
		case r.Outcome == Written && w.WritesSeries(), r.Outcome == Refused && w.Kind != Look:
			e.setFailures(s.rules, 0, s.at)
		case r.Outcome == Taken, r.Outcome == Changed, r.Outcome == Refused:
			// The first look follows at once. If it does not help, something is wrong or
			// someone else is as fast, and this must not become a hot loop.
			e.setFailures(s.rules, failures+1, s.at)
			if failures == 0 && w.Kind != Look {
				e.release()
			}
		}
	}
}

// decided applies a definite outcome to e.
//
// The phase says what the write was about: it cannot change while a write is in
// flight, except from unwritten to live by Restore, which does not touch entries
// in flight.
func (e *Entry) decided(s *step, w *Write, r *Result) {
	switch {
	case e.phase == claiming:
		e.claimed(s, w, r)
	case e.phase == conflicted:
		e.looked(s, w, r)
	case !w.WritesSeries():
		e.baseLooked(s, w, r)
	case r.Outcome == Written:
		e.accepted(s, w, r.Event)
	case r.Outcome == Refused:
		e.refuse(s, r.Reason)
	case r.Outcome == Taken:
		// It is not known when the other Event was written, so assume now.
		e.holdBaseName(s, s.at)
		e.becomeClaiming(w.Series.Name)
	case r.Outcome == Gone:
		e.vanished(s)
	case r.Outcome == Changed && w.Series.Version != "":
		e.becomeConflicted()
	}
}

// accepted says that the server has accepted a write of the series itself.
func (e *Entry) accepted(s *step, w *Write, event *eventsv1.Event) {
	st := &e.status
	e.becomeLive(versionOf(event))
	st.unsaid = st.unsaid.
		with(partManaged, event != nil && series.IsManaged(event)).
		with(partHeartbeat, w.Series.Heartbeat == 0 && (w.Creates() || w.unsaid.has(partHeartbeat)))
	// The next heartbeat depends on the age of the count, not on that of the response.
	st.progress, st.at = w.progress, w.at
	st.due &^= dueCount
	e.setSaid(w.Series.QuietWindow())
	e.planBeat(s)
	isEarly := w.Kind == Heartbeat && s.interval(e) < s.opts.HeartbeatInterval
	if e.hasUniqueName() && st.state == series.Ongoing && w.Kind != FlushCount && !isEarly {
		// A restarted process looks under the base name. This also renews the TTL of
		// that Event.
		e.wantLead(s)
	}
	if e.life == closing {
		e.holdBaseName(s, s.at)
	}
}

func (e *Entry) vanished(s *step) {
	if !e.loseIfSilent(s) {
		e.becomeUnwritten()
	}
}

// refuse says that the server rejects e and would reject it again. What the server
// does not know of e is lost.
//
// A series that accepts occurrences continues to do so. What occurs from now on is tried
// when its hold is over: a hot loop of rejected events must not cost more than one of
// accepted events.
func (e *Entry) refuse(s *step, reason DropReason) {
	if e.life != accepting {
		e.lose(s, reason)
		return
	}
	mayExist := e.hasExisted() || e.hasAttempts()
	if mayExist {
		e.holdBaseName(s, s.at)
	}
	s.lost, s.reason = e.lost(), reason
	e.becomeRefused(reason)
	if mayExist {
		// An Event with the counts so far exists, or may exist. What occurs from now on is
		// counted in another one.
		e.takeUniqueName()
	}
	e.status.at = s.at
	e.status.beatAt, _ = e.hold().left(s.at)
}

// tryAgain has what has occurred since the server refused e written: it may accept that by
// now.
func (e *Entry) tryAgain(s *step) {
	e.becomeUnwritten()
	e.add(e.counter.close())
	if e.status.due = 0; e.spec.count == 1 { // an Event with a series has at least two
		e.spec.state, e.spec.first = series.Singleton, s.now.Add(e.last()-s.at).UnixMicro()
		if note := e.spec.latestOrZero().note; note != "" {
			k := e.Key()
			e.spec.note = noteFor(&k, note)
			e.spec.setLastNote("")
		}
	}
}

// failuresBefore is how many failures of other kinds count when the server denies a series.
// They do not show that it is denied for long.
const failuresBefore = 8

// refusedFirst is the delay after the server has refused a series for the first time. It
// doubles up to the heartbeat interval, which can be shorter.
const refusedFirst = time.Minute

// lose says that nothing more is written of e. What the server does not know is lost. If
// the server has refused e, that is the reason, and not the given one.
func (e *Entry) lose(s *step, reason DropReason) {
	if e.phase == refused {
		reason = e.rare.refusal
	}
	e.add(e.counter.close()) // before lost, so that no occurrence comes in between
	s.lost, s.reason, s.forget = e.lost(), reason, true
}

// loseIfSilent forgets e if it was restored and has not occurred since, and
// reports whether that is so. All that is known of it was in an Event that is gone.
// To create that again would bring back what somebody has deleted, or what ended
// long ago.
func (e *Entry) loseIfSilent(s *step) bool {
	if e.silent {
		e.lose(s, "") // the server knew all of it
	}
	return e.silent
}

// versionOf returns the resourceVersion of an Event as a number. It is zero if the
// sink returns none, or one that is not decimal; the API server returns decimal
// ones for its own types.
func versionOf(event *eventsv1.Event) uint64 {
	if event == nil || event.ResourceVersion == "" {
		return 0 // an error of ParseUint would allocate
	}
	return VersionNumber(event.ResourceVersion)
}

// VersionNumber returns a resourceVersion as a number, and zero if it is not decimal.
func VersionNumber(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return version
}

func versionText(version uint64) string {
	if version == 0 {
		return ""
	}
	return strconv.FormatUint(version, 10)
}
