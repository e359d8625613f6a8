package eventstest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// Want describes events. An event matches if it matches every field that is set. The
// zero value matches every event.
type Want struct {
	// Regarding is the object that the event is about, or a *corev1.ObjectReference to
	// it. Its empty fields match any value; for example the UID, which an object has only
	// in a cluster.
	Regarding runtime.Object
	// Related is the second object, or a *corev1.ObjectReference to it. It matches like
	// Regarding.
	Related runtime.Object
	// Type, Reason and Action match the exact value.
	Type, Reason, Action string
	// Note matches the whole note.
	Note string
	// NoteContains matches a part of the note.
	NoteContains string
	// NoteMatches is a regular expression of package regexp that matches a part of the
	// note.
	NoteMatches string
	// Annotations are annotations of the event. It may have others.
	Annotations map[string]string
	// ReportingController is the name of the controller.
	ReportingController string
}

// difference is a field in which an event does not match.
type difference struct {
	field, want, got string
}

// condition is a condition on one field.
type condition struct {
	field string
	want  string // the wanted value, for people
	got   func(Event) string
	met   func(Event) bool
}

// matcher is a compiled Want.
type matcher []condition

// matcher compiles w. It returns an error if w is invalid. scheme knows the kinds of
// objects without a TypeMeta.
func (w Want) matcher(scheme *runtime.Scheme) (m matcher, err error) {
	equal := func(field, want string, get func(Event) string) {
		if want != "" {
			m = append(m, condition{field, fmt.Sprintf("%q", want), quoted(get), func(e Event) bool { return get(e) == want }})
		}
	}
	object := func(field string, obj runtime.Object, get func(Event) corev1.ObjectReference) {
		if obj == nil || err != nil {
			return
		}
		var ref corev1.ObjectReference
		if ref, err = partial(scheme, obj); err != nil {
			err = fmt.Errorf("eventstest: Want.%s: %w", field, err)
			return
		}
		m = append(m, condition{
			field: strings.ToLower(field),
			want:  describeFully(ref),
			got:   func(e Event) string { return describeFully(get(e)) },
			met:   func(e Event) bool { return covers(ref, get(e)) },
		})
	}
	note := func(e Event) string { return e.Note }

	equal("type", w.Type, func(e Event) string { return e.Type })
	equal("reason", w.Reason, func(e Event) string { return e.Reason })
	equal("action", w.Action, func(e Event) string { return e.Action })
	object("Regarding", w.Regarding, func(e Event) corev1.ObjectReference { return e.Regarding })
	object("Related", w.Related, func(e Event) corev1.ObjectReference { return e.Related })
	equal("note", w.Note, note)
	if part := w.NoteContains; part != "" {
		m = append(m, condition{"note", fmt.Sprintf("contains %q", part), quoted(note), func(e Event) bool { return strings.Contains(e.Note, part) }})
	}
	if w.NoteMatches != "" {
		pattern, compileErr := regexp.Compile(w.NoteMatches)
		if compileErr != nil {
			return nil, fmt.Errorf("eventstest: Want.NoteMatches: %w", compileErr)
		}
		m = append(m, condition{"note", fmt.Sprintf("matches %q", w.NoteMatches), quoted(note), func(e Event) bool { return pattern.MatchString(e.Note) }})
	}
	for _, key := range slices.Sorted(maps.Keys(w.Annotations)) {
		want := w.Annotations[key]
		m = append(m, condition{
			field: "annotation " + key,
			want:  fmt.Sprintf("%q", want),
			got: func(e Event) string {
				if got, ok := e.Annotations[key]; ok {
					return fmt.Sprintf("%q", got)
				}
				return "none"
			},
			met: func(e Event) bool { got, ok := e.Annotations[key]; return ok && got == want },
		})
	}
	equal("reportingController", w.ReportingController, func(e Event) string { return e.ReportingController })
	return m, err
}

// differences returns the fields in which e does not match.
func (m matcher) differences(e Event) (differ []difference) {
	for _, c := range m {
		if !c.met(e) {
			differ = append(differ, difference{c.field, c.want, c.got(e)})
		}
	}
	return differ
}

// matches reports whether e matches.
func (m matcher) matches(e Event) bool {
	for _, c := range m {
		if !c.met(e) {
			return false
		}
	}
	return true
}

// String returns the conditions on one line, for people.
func (m matcher) String() string {
	if len(m) == 0 {
		return "any event"
	}
	wants := make([]string, len(m))
	for i, c := range m {
		wants[i] = c.field + " " + c.want
	}
	return strings.Join(wants, ", ")
}

// partial returns a reference to obj with the fields that obj has. The scheme need not
// know its kind.
func partial(scheme *runtime.Scheme, obj runtime.Object) (corev1.ObjectReference, error) {
	ref, err := refer(scheme, obj)
	if err == nil || isNil(obj) {
		return ref, err
	}
	object, accessErr := meta.Accessor(obj)
	if accessErr != nil {
		return ref, err
	}
	return corev1.ObjectReference{Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}, nil
}

// covers reports whether the fields that are set in want are the same in got.
func covers(want, got corev1.ObjectReference) bool {
	met := func(want, got string) bool { return want == "" || want == got }
	return met(want.APIVersion, got.APIVersion) && met(want.Kind, got.Kind) && met(want.Namespace, got.Namespace) &&
		met(want.Name, got.Name) && met(string(want.UID), string(got.UID)) && met(want.FieldPath, got.FieldPath)
}

// describeFully is like describe, with all fields that covers compares.
func describeFully(ref corev1.ObjectReference) string {
	s := describe(ref)
	if ref.APIVersion != "" {
		s += " (" + ref.APIVersion + ")"
	}
	if ref.UID != "" {
		s += " uid " + string(ref.UID)
	}
	return s
}

func quoted(get func(Event) string) func(Event) string {
	return func(e Event) string { return fmt.Sprintf("%q", get(e)) }
}
