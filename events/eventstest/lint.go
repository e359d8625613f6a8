package eventstest

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

var (
	upperCamelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// What runtime/debug.Stack begins with, or a panic ends in.
	stackTrace = regexp.MustCompile(`(^|\n)goroutine \d+ \[`)
	privateKey = regexp.MustCompile(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----`)
)

// Lint returns the problems of class ClassStyle that an Event has: where it does
// not keep to docs/style-guide.md. Only what can be told from one Event for certain
// is looked at:
//
//   - reason and action are UpperCamelCase: words, not data.
//   - reason and action are not the same word, for then one of them is missing.
//   - related is another object than regarding.
//   - the note is no stack trace.
//   - neither the note nor an annotation has a private key in it.
//
// What Validate complains about is not said a second time.
func Lint(event *eventsv1.Event) []Problem {
	return lint(event, false)
}

// lint is Lint. legacy says that the caller could not give an action, and its
// reason stands in.
func lint(event *eventsv1.Event, legacy bool) (problems []Problem) {
	add := func(field, value, detail string) {
		problems = append(problems, Problem{Class: ClassStyle, Field: field, Value: value, Detail: detail})
	}
	const camel = "must be UpperCamelCase, a word from a small fixed set"
	if event.Reason != "" && !upperCamelCase.MatchString(event.Reason) {
		add("reason", event.Reason, camel)
	}
	switch {
	case legacy:
	case event.Action != "" && !upperCamelCase.MatchString(event.Action):
		add("action", event.Action, camel)
	case event.Action != "" && event.Action == event.Reason:
		add("action", event.Action, "must not be the reason: action says what was done, reason says why or how it went")
	}
	if sameObject(event.Regarding, event.Related) {
		add("related", describe(*event.Related), "must be another object than regarding")
	}
	if stackTrace.MatchString(event.Note) {
		add("note", event.Note, "must not be a stack trace")
	}
	// The value is not shown: it is a secret.
	const secret = "must not have a private key in it: everybody who may read events reads it"
	if privateKey.MatchString(event.Note) {
		add("note", "", secret)
	}
	for key, value := range event.Annotations {
		if privateKey.MatchString(value) {
			add("metadata.annotations["+key+"]", "", secret)
		}
	}
	return problems
}

// sameObject reports whether both are references to the same part of the same
// object.
func sameObject(regarding corev1.ObjectReference, related *corev1.ObjectReference) bool {
	a, b := series.ReferenceOf(&regarding), series.ReferenceOf(related)
	return a == b && !a.IsZero()
}

// misformatted reports whether Sprintf complains in note about a format that does
// not go with its arguments. What the format and the arguments bring with them is
// no complaint.
func misformatted(note, format string, args []any) bool {
	const complaint = "%!"
	brought := strings.Count(format, complaint)
	for _, arg := range args {
		brought += strings.Count(fmt.Sprint(arg), complaint)
	}
	return len(args) > 0 && strings.Count(note, complaint) > brought
}
