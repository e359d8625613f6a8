package series

import "fmt"

// State says whether a series goes on. The zero value is Singleton: an Event
// without a state, such as one of another recorder, has occurred once as far as is
// known.
type State uint8

const (
	// Singleton: the event has occurred once. The Event has neither `series` nor a
	// state.
	Singleton State = iota
	// Ongoing: the event recurs. Heartbeats update the count.
	Ongoing
	// Finished: the event has not occurred for some minutes. The count is final.
	Finished
	// Unknown: the recorder evicted the series while it was Ongoing. Nobody knows
	// whether the event still recurs.
	Unknown
)

// stateNames are the values of AnnotationState.
var stateNames = [...]string{"Singleton", "Ongoing", "Finished", "Unknown"}

// String returns the name of the state, which is also the value of
// [AnnotationState].
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Closed reports whether the series has ended, so no occurrence is added to it.
func (s State) Closed() bool { return s == Finished || s == Unknown }

// ParseState parses the value of [AnnotationState]. The empty string is Singleton,
// like an Event without the annotation. ok is false if value is not a state.
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
