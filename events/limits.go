package events

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/eventseries/eventseries/internal/text"
	"github.com/eventseries/eventseries/series"
)

// What kube-apiserver takes, in bytes: ActionLengthLimit, ReasonLengthLimit and
// ReportingInstanceLengthLimit of its pkg/apis/core/validation/events.go.
const (
	maxAction   = 128
	maxReason   = 128
	maxInstance = 128
)

// unnamed stands in where the API server wants a word and nobody gave one.
const unnamed = "Unknown"

// fitReference returns ref in valid UTF-8. The API server looks no further into
// references.
func fitReference(ref series.Reference) series.Reference {
	return series.Reference{
		APIVersion: text.Valid(ref.APIVersion),
		Kind:       text.Valid(ref.Kind),
		Namespace:  text.Valid(ref.Namespace),
		Name:       text.Valid(ref.Name),
		UID:        types.UID(text.Valid(string(ref.UID))),
		FieldPath:  text.Valid(ref.FieldPath),
	}
}

// formatNote returns the note of an event, as long as the API server takes it.
func formatNote(note string, args []any) string {
	return text.Cut(text.Format(note, args), series.MaxNoteBytes)
}

// reasonAndAction returns both. Both are required: where one is missing, the other
// stands in.
func reasonAndAction(reason, action string) (string, string) {
	if reason == "" {
		reason = action
	}
	if reason == "" {
		reason = unnamed
	}
	if action == "" {
		action = reason
	}
	return reason, action
}

// fitKey makes what the API server takes of the words of a caller, and reports
// whether that is something else. A key that is tracked fits, so those that are
// found in the table need not be looked at: that takes 200 ns.
func fitKey(k *series.Key) (changed bool) {
	before := *k
	k.Regarding, k.Related = fitReference(k.Regarding), fitReference(k.Related)
	k.Reason, k.Action = text.Cut(k.Reason, maxReason), text.Cut(k.Action, maxAction)
	return *k != before
}

// fitType returns the type as the API knows it. ok is false if it does not.
func fitType(eventtype string) (_ string, ok bool) {
	switch eventtype {
	case corev1.EventTypeNormal, corev1.EventTypeWarning:
		return eventtype, true
	}
	return "", false
}

// fitAnnotations returns a copy of what the API server takes of annotations, and
// the error that it would have given for the rest. What belongs to this project
// is left out without a word: an Event that is emitted again carries it.
func fitAnnotations(annotations map[string]string) (map[string]string, error) {
	if len(annotations) == 0 {
		return nil, nil
	}
	fit := make(map[string]string, len(annotations))
	var bad field.ErrorList
	size := 0
	path := field.NewPath("metadata", "annotations")
	// In order, so that it is the same ones each time for which there is no room.
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(k, series.AnnotationPrefix) {
			continue
		}
		if errs := apivalidation.ValidateAnnotations(map[string]string{k: ""}, path); len(errs) > 0 {
			bad = append(bad, errs...)
			continue
		}
		v := text.Valid(annotations[k])
		if size += len(k) + len(v); size > series.MaxAnnotationBytes {
			bad = append(bad, field.TooLong(path.Key(k), "", series.MaxAnnotationBytes))
			size -= len(k) + len(v)
			continue
		}
		fit[k] = v
	}
	return fit, bad.ToAggregate()
}
