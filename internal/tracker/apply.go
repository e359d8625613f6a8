package tracker

import (
	"slices"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/internal/heartbeat"
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

// Apply interprets the response to a write.
func (t *Tracker) Apply(w *Write, r Result, now time.Time) (drops []Drop) {
	at := t.offset(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	e := w.entry
	t.sched.Done(e, w.pass, r.Outcome.forGate(), r.RetryAfter, at)
	if e.life == forgotten {
		return nil
	}
	if r.Outcome != Written && (w.renoted || w.reannotated) {
		s := t.drain(e)
		e.spec.renoted, e.spec.reannotated = e.spec.renoted || w.renoted, e.spec.reannotated || w.reannotated
		s.mu.Unlock()
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
			t.unseen(e) // a role that only permits creates
		}
		t.delay(e, failures+1, at)
		t.giveUp(w, r.Outcome, at, &drops)
	default:
		t.apply(e, w, &r, now, &drops)
		switch {
		case e.life == forgotten:
		case r.Outcome == Written && w.WritesSeries():
			t.delay(e, 0, at)
		case r.Outcome == Taken, r.Outcome == Changed, r.Outcome == Refused && w.Kind == Look:
			// The first look follows at once. If it does not help, something is wrong or
			// someone else is as fast, and this must not become a hot loop.
			t.delay(e, failures+1, at)
			if failures == 0 && w.Kind != Look {
				e.extra.notBefore = 0
			}
		case r.Outcome == Refused:
			t.delay(e, 0, at)
		}
	}
	if e.life != forgotten && (r.Outcome == Refused || r.Outcome == Written && w.WritesSeries()) {
		t.sched.Wait(e, at) // what waits from now on is something new
	}
	t.conclude(e, at, &drops)
	return drops
}

// apply applies a definite outcome to e.
//
// The phase says what the write was about: it cannot change while a write is in
// flight, except from unwritten to live by Restore, which does not touch entries
// in flight.
func (t *Tracker) apply(e *Entry, w *Write, r *Result, now time.Time, drops *[]Drop) {
	at := t.offset(now)
	switch {
	case e.phase == claiming:
		t.applyClaim(e, w, r, now, drops)
	case e.phase == conflicted:
		t.applyConflict(e, w, r, now, drops)
	case !w.WritesSeries():
		t.applySignpost(e, w, r, now)
	case r.Outcome == Written:
		t.accepted(e, w, r.Event, at)
	case r.Outcome == Refused:
		t.refuse(e, r.Reason, at, drops)
	case r.Outcome == Taken:
		// Nobody knows when the other Event was written, so reckon with now.
		t.holdBaseName(e, at)
		e.becomeClaiming(w.Series.Name)
	case r.Outcome == Gone:
		t.vanished(e, drops)
	case r.Outcome == Changed && w.Series.Version != "":
		e.becomeConflicted()
	}
}

// accepted says that the server has accepted a write of the series itself.
func (t *Tracker) accepted(e *Entry, w *Write, event *eventsv1.Event, at time.Duration) {
	st := &e.status
	e.becomeLive(versionOf(event), event != nil && series.IsManaged(event))
	// The next heartbeat depends on the age of the count, not on that of the response.
	st.revision, st.state, st.count, st.at = w.revision, w.Series.State, w.Series.Count, w.at
	st.promised, st.flush = w.Series.Heartbeat != 0, t.awaited(e)
	t.planBeat(e)
	isEarly := w.Kind == Heartbeat && t.interval(e) < t.opts.HeartbeatInterval
	if e.hasUniqueName() && st.state == series.Ongoing && w.Kind != FlushCount && !isEarly {
		// A restarted process looks under the base name. This also renews the TTL of
		// that Event.
		t.wantSignpost(e, at)
	}
	if e.life == closing {
		t.holdBaseName(e, at)
	}
}

// vanished says that the Event of e does not exist any more.
func (t *Tracker) vanished(e *Entry, drops *[]Drop) {
	if !t.forgetSilent(e, drops) {
		e.becomeUnwritten()
	}
}

// refuse says that the server rejects e and would reject it again. What the server
// does not know of e is lost.
//
// A series that accepts occurrences continues to do so and is tried again with its
// next heartbeat: a hot loop of rejected events must not cost more than one of
// accepted events.
func (t *Tracker) refuse(e *Entry, reason DropReason, at time.Duration, drops *[]Drop) {
	if e.life == closing {
		t.lose(e, reason, drops)
		return
	}
	existed := e.status.existed
	if existed {
		t.holdBaseName(e, at)
	}
	s := t.drain(e)
	if lost := e.lost(); lost > 0 {
		*drops = append(*drops, Drop{Reason: reason, Key: e.Key(), Note: e.spec.note, Count: lost})
	}
	e.becomeRefused(reason)
	s.open(e)
	s.mu.Unlock()
	if existed {
		// An Event with the counts so far exists. What occurs from now on is counted
		// in another one.
		t.takeUniqueName(e)
	}
	e.status.at = at
	t.planBeat(e)
}

// giveUp drops what has waited behind a closed gate for longer than the server
// keeps an Event. A shutdown waits for nothing that the server has denied twice in a
// row: once can be an object of its own, or a server that is not ready.
func (t *Tracker) giveUp(w *Write, o Outcome, at time.Duration, drops *[]Drop) {
	reason := DropUnavailable
	if o == Denied {
		reason = DropDenied
	}
	final := o == Denied && t.hurried
	expired := t.sched.Expired(w.pass.Gate, final, t.opts.EventTTL, at)
	if final && len(expired) == 0 && w.entry.failures() > 1 {
		expired = []*Entry{w.entry}
	}
	for _, e := range expired {
		if e.life == forgotten {
			continue // another loss on this list has made room
		}
		t.refuse(e, reason, at, drops)
		t.conclude(e, at, drops)
	}
}

// conclude forgets e if it is closing and has nothing left to write, and puts it
// where it belongs otherwise. It must be called after each change of an entry
// that was in flight. Tracker.mu is held.
func (t *Tracker) conclude(e *Entry, at time.Duration, drops *[]Drop) {
	switch {
	case e.life == forgotten:
	case e.life == closing && e.need() == none && e.phase == refused:
		t.lose(e, "", drops)
	case e.life == closing && e.need() == none:
		t.forget(e)
	default:
		t.schedule(e, at)
		t.boundClosing(drops)
		t.settle(e)
	}
}

// attempt remembers a write whose outcome is unknown. The first attempt stays,
// because it has the smallest count: without it, a part of what others have
// counted would be taken for e's own.
func (e *Entry) attempt(w *Write) {
	x := e.more()
	if len(x.attempts) == maxAttempts {
		x.attempts = slices.Delete(x.attempts, 1, 2)
	}
	x.attempts = append(x.attempts, attempt{w.Series.Count, w.Series.Last.UnixMicro(), w.revision})
}

func (e *Entry) failures() int {
	if e.extra == nil {
		return 0
	}
	return e.extra.failures
}

// delay says how many requests for e have failed in a row, and delays the next one
// accordingly.
func (t *Tracker) delay(e *Entry, failures int, at time.Duration) {
	if failures == 0 {
		if e.extra != nil {
			e.extra.failures, e.extra.notBefore = 0, 0
			if e.extra.isZero() {
				e.extra = nil
			}
		}
		return
	}
	e.more().failures = failures
	e.extra.notBefore = at + t.sched.Backoff(failures)
}

func (x *extra) isZero() bool {
	return x.uniqueName == "" && !x.vacated && x.instance == (extra{}).instance && len(x.attempts) == 0 && x.claim == claim{} &&
		x.refusal == "" && x.failures == 0 && x.notBefore == 0
}

// versionOf returns the resourceVersion of an Event as a number. It is zero if the
// sink returns none, or one that is not decimal; the API server returns decimal
// ones for its own types.
func versionOf(event *eventsv1.Event) uint64 {
	if event == nil || event.ResourceVersion == "" {
		return 0 // an error of ParseUint would allocate
	}
	return versionNumber(event.ResourceVersion)
}

func versionNumber(text string) uint64 {
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
