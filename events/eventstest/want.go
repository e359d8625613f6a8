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

// Want says which events are meant. A field that is not set matches everything, so
// the zero value matches every event.
type Want struct {
	// Regarding is the object that the event is about: the object itself, or a
	// *corev1.ObjectReference. What it does not say, such as the UID of an object
	// that is in no cluster, is not compared.
	Regarding runtime.Object
	// Related is the second object, compared as Regarding is.
	Related runtime.Object
	// Type, Reason and Action, as they are.
	Type, Reason, Action string
	// Note is the whole note.
	Note string
	// NoteContains is a part of the note.
	NoteContains string
	// NoteMatches is a regular expression (package regexp) that a part of the note
	// matches.
	NoteMatches string
	// Annotations are those that the event must have, maybe among others.
	Annotations map[string]string
	// ReportingController is the name of the recorder.
	ReportingController string
}

// difference is one field in which an event is not what is wanted.
type difference struct {
	field, want, got string
}

// condition is what is wanted of one field.
type condition struct {
	field string
	want  string // for people
	got   func(Event) string
	met   func(Event) bool
}

// matcher is a Want that is ready to be compared.
type matcher []condition

// matcher returns what w wants of each field. scheme knows the kinds of objects
// that do not say it. The error is that w can never be compared.
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

// differences returns where e is not what is wanted. None means that it is.
func (m matcher) differences(e Event) (differ []difference) {
	for _, c := range m {
		if !c.met(e) {
			differ = append(differ, difference{c.field, c.want, c.got(e)})
		}
	}
	return differ
}

// matches reports whether e is what is wanted.
func (m matcher) matches(e Event) bool {
	for _, c := range m {
		if !c.met(e) {
			return false
		}
	}
	return true
}

// String returns what is wanted in one line, for people.
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

// partial returns what obj says of itself: an object whose kind is not known is
// compared by its name.
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

// covers reports whether got is what want says.
func covers(want, got corev1.ObjectReference) bool {
	met := func(want, got string) bool { return want == "" || want == got }
	return met(want.APIVersion, got.APIVersion) && met(want.Kind, got.Kind) && met(want.Namespace, got.Namespace) &&
		met(want.Name, got.Name) && met(string(want.UID), string(got.UID)) && met(want.FieldPath, got.FieldPath)
}

// describeFully returns a reference with all that it is compared by.
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
