package series

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
)

// State says whether the event of a series still recurs. The zero value is Singleton: an
// Event without a state, such as one of another recorder, has occurred once as far as is
// known.
type State uint8

const (
	// Singleton: the event has occurred once. The Event has neither `series` nor a
	// state.
	Singleton State = iota
	// Ongoing: the event recurs. Heartbeats update the count.
	Ongoing
	// Finished: the event has not occurred for the window of the series, see
	// [Series.QuietWindow]. The series continues if the event recurs while the server
	// keeps the Event.
	Finished
	// Unknown: nobody knows whether the event still recurs. The recorder evicted the
	// series while it was Ongoing, writes no states, or no longer updates the Event.
	Unknown
)

// stateNames are the values of LabelState.
var stateNames = [...]string{"Singleton", "Ongoing", "Finished", "Unknown"}

// String returns the name of the state, which is also the value of
// [LabelState].
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
	if i := slices.Index(stateNames[:], value); i >= 0 {
		return State(i), true
	}
	return Singleton, false
}

// QuietWindow returns Window, or [FinishAfter] if that is zero.
func (s *Series) QuietWindow() time.Duration { return cmp.Or(s.Window, FinishAfter) }

// ClockSkew is by how much the clocks of a recorder and of a reader can differ. A reader
// must not draw conclusions from times that are closer to each other.
const ClockSkew = 10 * time.Minute

// StateAt returns the state of s at the time now. It is State, unless s is stale: an
// Ongoing series is Unknown if now is later than Last + Heartbeat + [Series.QuietWindow] +
// [ClockSkew], because its recorder would have updated or finished it by then. If Heartbeat
// is zero, StateAt uses [DefaultHeartbeat].
func (s *Series) StateAt(now time.Time) State {
	if s.State == Ongoing && now.Sub(s.Last) > cmp.Or(s.Heartbeat, DefaultHeartbeat)+s.QuietWindow()+ClockSkew {
		return Unknown
	}
	return s.State
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
