package eventstest

import (
	"fmt"

	"github.com/eventseries/eventseries/internal/text"
)

// Class says what kind of problem an event has.
type Class uint8

const (
	// ClassRules: kube-apiserver refuses the event as it was emitted. The recorder of
	// package events repairs what can be repaired; what it cannot repair, and
	// everything that goes through another recorder, is lost.
	ClassRules Class = iota
	// ClassRecorder: the event is not recorded as it was meant. Something of it is
	// left out or replaced, or its format does not go with its arguments.
	ClassRecorder
	// ClassStyle: it is recorded, but not as docs/style-guide.md would have it.
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

// Problem is one thing that is wrong with an event.
type Problem struct {
	// Class of the problem.
	Class Class
	// Field is where the problem is, as events.k8s.io/v1 has it in JSON, such as
	// "note" or "regarding.namespace".
	Field string
	// Value is the offending value, the empty string for one that is missing.
	Value string
	// Detail says what is wrong with it.
	Detail string
	// Lost says that the recorder of package events cannot repair it either, and
	// drops the event.
	Lost bool
}

// maxShown is how many bytes of a value are shown to people.
const maxShown = 80

// String returns p in one line, for people. Long values are cut.
func (p Problem) String() string {
	value := p.Value
	if len(value) > maxShown {
		value = text.Cut(value, maxShown)
	}
	s := fmt.Sprintf("%s: %q: %s", p.Field, value, p.Detail)
	if p.Lost {
		s += " (the event is lost)"
	}
	return s
}
