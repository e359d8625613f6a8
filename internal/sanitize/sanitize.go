// Package sanitize makes what programs pass to a recorder acceptable to the API server, and
// limits its size.
package sanitize

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	restclient "k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/series"
)

// The limits of kube-apiserver in bytes. Those of an Event are in its
// pkg/apis/core/validation/events.go. It does not check references, but no object has a longer
// name, namespace, kind, or group and version. Nobody limits UIDs and field paths.
const (
	maxText       = 128 // of an action, a reason, an instance, or a UID
	maxName       = validation.DNS1123SubdomainMaxLength
	maxNamespace  = validation.DNS1123LabelMaxLength
	maxKind       = validation.DNS1035LabelMaxLength
	maxAPIVersion = validation.DNS1123SubdomainMaxLength + len("/") + validation.DNS1035LabelMaxLength
	maxFieldPath  = series.MaxNoteBytes
)

// maxNote is the length of the longest note that a recorder keeps. The API server accepts longer ones
// without eventTime, but the memory of a recorder is bounded.
const maxNote = 4 * series.MaxNoteBytes

// unnamed replaces a required field that is empty.
const unnamed = "Unknown"

// Note returns the note of an event, formatted, and cut to what a recorder keeps.
func Note(note string, args []any) string {
	return eventtext.Cut(eventtext.Format(note, args), maxNote)
}

// ReasonAndAction returns a reason and an action that are not empty, as the API server
// requires: one replaces the other.
func ReasonAndAction(reason, action string) (string, string) {
	reason = cmp.Or(reason, action, unnamed)
	return reason, cmp.Or(action, reason)
}

// Key makes the fields of a key valid UTF-8, and cuts those that are too long. A reference
// that is cut refers to no object, which regarding and related report. A namespace in which
// there can be no request is an error, too. Key takes 200 ns, so a recorder does not call it
// for a key that is tracked.
func Key(k *series.Key) (regarding, related error) {
	k.Reason, k.Action = eventtext.Cut(k.Reason, maxText), eventtext.Cut(k.Action, maxText)
	regarding, related = reference(&k.Regarding), reference(&k.Related)
	if wrong := restclient.IsValidPathSegmentName(k.Regarding.Namespace); len(wrong) > 0 && regarding == nil {
		regarding = fmt.Errorf("events: namespace %q %s", k.Regarding.Namespace, strings.Join(wrong, ", "))
	}
	return regarding, related
}

func reference(ref *series.Reference) (err error) {
	fit := func(field, value string, limit int) string {
		if value = eventtext.Valid(value); len(value) <= limit {
			return value
		}
		err = fmt.Errorf("events: %s has %d bytes, more than %d: %q", field, len(value), limit, eventtext.Cut(value, maxText))
		return eventtext.Cut(value, limit)
	}
	ref.APIVersion = fit("apiVersion", ref.APIVersion, maxAPIVersion)
	ref.Kind = fit("kind", ref.Kind, maxKind)
	ref.Namespace = fit("namespace", ref.Namespace, maxNamespace)
	ref.Name = fit("name", ref.Name, maxName)
	ref.UID = types.UID(fit("uid", string(ref.UID), maxText))
	ref.FieldPath = eventtext.Cut(ref.FieldPath, maxFieldPath)
	return err
}

// Annotations returns a copy of the annotations that the API server accepts, of at most limit
// bytes together, and the error that it would return for the others. It omits those of this
// project without an error: an Event that is emitted again carries them.
func Annotations(annotations map[string]string, limit int) (map[string]string, error) {
	if len(annotations) == 0 {
		return nil, nil
	}
	sane := make(map[string]string, len(annotations))
	var bad field.ErrorList
	size := 0
	path := field.NewPath("metadata", "annotations")
	// In order, so that each time the same ones exceed the limit.
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(k, series.AnnotationPrefix) {
			continue
		}
		if errs := apivalidation.ValidateAnnotations(map[string]string{k: ""}, path); len(errs) > 0 {
			bad = append(bad, errs...)
			continue
		}
		v := eventtext.Valid(annotations[k])
		if size+len(k)+len(v) > limit {
			bad = append(bad, field.TooLong(path.Key(k), "", limit))
			continue
		}
		size += len(k) + len(v)
		sane[k] = v
	}
	return sane, bad.ToAggregate()
}
