package series

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// State says whether the event of a series still recurs. The zero value is Singleton, the state of an
// Event that has neither `series` nor a state. An Event with `series` and without a state is Unknown.
type State uint8

const (
	// Singleton: the event has occurred once. The Event has neither `series` nor a
	// state.
	Singleton State = iota
	// Ongoing: the event recurs. Heartbeats update the count.
	Ongoing
	// Finished: the event has not occurred for the window of the series, see
	// [Series.QuietWindow], or has recurred after a long gap. The series continues if the event recurs while the server
	// keeps the Event.
	Finished
	// Unknown: nobody knows whether the event still recurs. The recorder evicted the
	// series while it was Ongoing, writes no states, or no longer updates the Event. Or
	// the time of the latest occurrence is missing or false.
	Unknown
	// Quiet: the recorder would have written another occurrence, so the event has probably
	// stopped. No Event says so: see [Series.Prompt].
	Quiet
)

// stateNames are the names of the states. Those before Quiet are the values of LabelState.
var stateNames = [...]string{"Singleton", "Ongoing", "Finished", "Unknown", "Quiet"}

// String returns the name of the state, which is also the value of
// [LabelState] unless it is Quiet.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Closed reports whether the series has ended: whether s is Finished or Unknown.
func (s State) Closed() bool { return s == Finished || s == Unknown }

// ParseState parses the value of [LabelState]. The empty string is Singleton, like an
// Event without the label. ok is false if value is not a state.
func ParseState(value string) (state State, ok bool) {
	if value == "" {
		return Singleton, true
	}
	if i := slices.Index(stateNames[:Quiet], value); i >= 0 {
		return State(i), true
	}
	return Singleton, false
}

// QuietWindow returns Window, or [FinishAfter] if that is zero.
func (s *Series) QuietWindow() time.Duration { return cmp.Or(s.Window, FinishAfter) }

// ClockSkew is by how much the clocks of a recorder and of a reader can differ. A reader
// must not draw conclusions from times that are closer to each other.
const ClockSkew = 10 * time.Minute

// StaleAt returns when an Ongoing series is stale unless its recorder updates the Event
// before: Last + Heartbeat + [Series.QuietWindow], and [ClockSkew] unless Prompt is set. If
// Heartbeat is zero, StaleAt uses [DefaultHeartbeat].
func (s *Series) StaleAt() time.Time {
	at := s.Last.Add(cmp.Or(s.Heartbeat, DefaultHeartbeat) + s.QuietWindow())
	if s.Prompt {
		return at
	}
	return at.Add(ClockSkew)
}

// StateAt returns the state of s at the time now. It is State, unless that does not follow from
// the times: an Ongoing series after [Series.StaleAt] is Unknown, or Quiet if Prompt is set,
// because its recorder would have updated or finished it by then. A series that is neither
// Finished nor Unknown is Unknown if Last is later than now by more than [ClockSkew], or if
// it is Ongoing and Last is zero.
func (s *Series) StateAt(now time.Time) State {
	switch {
	case s.State.Closed():
		return s.State
	case s.Last.Sub(now) > ClockSkew || s.State == Ongoing && s.Last.IsZero():
		return Unknown
	case s.State == Ongoing && now.After(s.StaleAt()) && s.Prompt:
		return Quiet
	case s.State == Ongoing && now.After(s.StaleAt()):
		return Unknown
	default:
		return s.State
	}
}

// StateAt returns the [Series.StateAt] of the series that event describes. It returns
// Unknown if [FromEvent] returns an error.
func StateAt(event *eventsv1.Event, now time.Time) State {
	s, err := FromEvent(event)
	if err != nil {
		return Unknown
	}
	return s.StateAt(now)
}
