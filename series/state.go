package series

import "fmt"

// State says what a series is at the moment.
//
// The zero value is Singleton, because that is what an Event is of which
// nothing else has been said: it carries no series and no state annotation,
// and neither does an Event of an emitter that does not know states. What is
// lost sight of has a state of its own, Unknown.
type State uint8

const (
	// Singleton has occurred once. On the wire it has neither `series` nor a
	// state annotation.
	Singleton State = iota
	// Ongoing recurs: occurrences are counted, heartbeats tell how many.
	Ongoing
	// Finished has been quiet for the window; its count is final.
	Finished
	// Unknown was given up while it was Ongoing, to make room. Nobody knows
	// whether it goes on.
	Unknown
)

// stateNames are the values of the state annotation; see ParseState.
var stateNames = [...]string{"Singleton", "Ongoing", "Finished", "Unknown"}

// String returns the name of the state, which is also the value of
// AnnotationState on the wire.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Closed reports whether the series has ended: no occurrence is added to it
// any more.
func (s State) Closed() bool { return s == Finished || s == Unknown }

// ParseState reads the value of AnnotationState. The empty string is
// Singleton, as an Event without the annotation is; ok is false for anything
// that is not the name of a state.
func ParseState(value string) (state State, ok bool) {
	if value == "" {
		return Singleton, true
	}
	for i, name := range stateNames {
		if value == name {
			return State(i), true
		}
	}
	return Singleton, false
}
