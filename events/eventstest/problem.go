package eventstest

import (
	"fmt"

	"github.com/eventseries/eventseries/internal/eventtext"
)

// Class is a kind of [Problem].
type Class uint8

const (
	// ClassRules means that kube-apiserver rejects the event as emitted. Recorders of
	// package events repair the event if they can, and drop it otherwise (see
	// [Problem.Lost]). Other recorders always lose it.
	ClassRules Class = iota
	// ClassRecorder means that the recorder of package events omits or replaces a part of
	// the event, or that the format of the note does not match its arguments.
	ClassRecorder
	// ClassStyle means that the event violates docs/style-guide.md. It is recorded as
	// emitted.
	ClassStyle
)

// String returns the name of the class.
func (c Class) String() string {
	switch c {
	case ClassRules:
		return "rules"
	case ClassRecorder:
		return "recorder"
	case ClassStyle:
		return "style"
	default:
		return fmt.Sprintf("Class(%d)", uint8(c))
	}
}

// Problem is something that is wrong with an event. See [Event.Problems], [Validate] and
// [Lint].
type Problem struct {
	// Class is the kind of the problem.
	Class Class
	// Field is the path of the field in the JSON of events.k8s.io/v1, such as "note" or
	// "regarding.namespace".
	Field string
	// Value is the value of the field. It is empty if the field is missing or a secret.
	Value string
	// Detail says what is wrong with the value.
	Detail string
	// Lost says that recorders of package events cannot repair the problem, and drop the
	// event.
	Lost bool
}

// maxShown is the length to which reports cut values, in bytes.
const maxShown = 80

// String returns the problem on one line, for people. It truncates long values.
func (p Problem) String() string {
	value := p.Value
	if len(value) > maxShown {
		value = eventtext.Cut(value, maxShown)
	}
	s := fmt.Sprintf("%s: %q: %s", p.Field, value, p.Detail)
	if p.Lost {
		s += " (the event is lost)"
	}
	return s
}
