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
	// The start of runtime/debug.Stack, and of the trace after a panic.
	stackTrace = regexp.MustCompile(`(^|\n)goroutine \d+ \[`)
	privateKey = regexp.MustCompile(`-----BEGIN ([A-Z0-9]+ )*PRIVATE KEY-----`)
)

// Lint returns the problems, of class [ClassStyle], for which an Event violates
// docs/style-guide.md. It checks what is certain from a single Event:
//
//   - Reason and action are UpperCamelCase words, not data.
//   - Reason and action are different words.
//   - Related is another object than regarding.
//   - Regarding is not cluster-scoped if related is namespaced.
//   - Regarding and related have a name or a UID. An object that is yet to be created with a
//     generateName has none, and shares its Event with others of its kind.
//   - The note is not a stack trace.
//   - Neither the note nor an annotation contains a private key.
//
// Lint does not repeat the problems that [Validate] finds.
func Lint(event *eventsv1.Event) []Problem {
	return lint(event, false)
}

// lint is Lint. If legacy is set, the caller could not pass an action, and action is the
// reason.
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
		add("action", event.Action, "must not be the reason: the action says what the controller did, the reason why or with which result")
	}
	if sameObject(event.Regarding, event.Related) {
		add("related", describe(*event.Related), "must be another object than regarding")
	}
	if event.Related != nil && event.Related.Namespace != "" && event.Regarding.Kind != "" && event.Regarding.Namespace == "" {
		add("regarding", describe(event.Regarding), "must be the namespaced object and related the cluster-scoped one: the Event is in the namespace of regarding")
	}
	const identity = "must have a name or a UID: events about different objects without them become one Event"
	if isNameless(event.Regarding) {
		add("regarding", describe(event.Regarding), identity)
	}
	if event.Related != nil && isNameless(*event.Related) {
		add("related", describe(*event.Related), identity)
	}
	if stackTrace.MatchString(event.Note) {
		add("note", event.Note, "must not be a stack trace")
	}
	// These problems have no value, which is a secret.
	const secret = "must not contain a private key, which everybody who may read events could read"
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

// isNameless reports whether different objects of a kind have this reference.
func isNameless(ref corev1.ObjectReference) bool {
	return ref.Kind != "" && ref.Name == "" && ref.UID == ""
}

// sameObject reports whether both refer to the same part of the same object.
func sameObject(regarding corev1.ObjectReference, related *corev1.ObjectReference) bool {
	a, b := series.ReferenceOf(&regarding), series.ReferenceOf(related)
	return a == b && !a.IsZero()
}

// misformatted reports whether note contains a complaint of Sprintf that the format does
// not match its arguments. It ignores what looks like a complaint in the format or in the
// arguments.
func misformatted(note, format string, args []any) bool {
	const complaint = "%!"
	before := strings.Count(format, complaint)
	for _, arg := range args {
		before += strings.Count(fmt.Sprint(arg), complaint)
	}
	return len(args) > 0 && strings.Count(note, complaint) > before
}
