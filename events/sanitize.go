package events

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// The limits of kube-apiserver in bytes: ActionLengthLimit, ReasonLengthLimit, and
// ReportingInstanceLengthLimit of its pkg/apis/core/validation/events.go.
const (
	maxAction   = 128
	maxReason   = 128
	maxInstance = 128
)

// unnamed replaces a required field that is empty.
const unnamed = "Unknown"

// sanitizeReference returns ref in valid UTF-8. The API server checks nothing else
// in references.
func sanitizeReference(ref series.Reference) series.Reference {
	return series.Reference{
		APIVersion: eventtext.Valid(ref.APIVersion),
		Kind:       eventtext.Valid(ref.Kind),
		Namespace:  eventtext.Valid(ref.Namespace),
		Name:       eventtext.Valid(ref.Name),
		UID:        types.UID(eventtext.Valid(string(ref.UID))),
		FieldPath:  eventtext.Valid(ref.FieldPath),
	}
}

// formatNote returns the note of an event, cut to the limit of the API server.
func formatNote(note string, args []any) string {
	return eventtext.Cut(eventtext.Format(note, args), series.MaxNoteBytes)
}

// reasonAndAction returns a reason and an action that are not empty, as the API server
// requires: one replaces the other.
func reasonAndAction(reason, action string) (string, string) {
	reason = cmp.Or(reason, action, unnamed)
	return reason, cmp.Or(action, reason)
}

// sanitizeKey makes the fields of a key acceptable to the API server, and reports whether
// it changed something. It takes 200 ns, so the recorder does not call it for a key that
// is tracked, which is acceptable.
func sanitizeKey(k *series.Key) (changed bool) {
	before := *k
	k.Regarding, k.Related = sanitizeReference(k.Regarding), sanitizeReference(k.Related)
	k.Reason, k.Action = eventtext.Cut(k.Reason, maxReason), eventtext.Cut(k.Action, maxAction)
	return *k != before
}

// sanitizeAnnotations returns a copy of the annotations that the API server accepts,
// and the error that it would return for the others. It omits those of this project
// without an error: an Event that is emitted again carries them.
func sanitizeAnnotations(annotations map[string]string) (map[string]string, error) {
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
		if size += len(k) + len(v); size > tracker.MaxAnnotationBytes {
			bad = append(bad, field.TooLong(path.Key(k), "", tracker.MaxAnnotationBytes))
			size -= len(k) + len(v)
			continue
		}
		sane[k] = v
	}
	return sane, bad.ToAggregate()
}

// identity says who emits: reportingController and reportingInstance.
type identity struct {
	controller, instance string
}

// repair is a name that had to be changed.
type repair struct {
	field       string // of the Event
	given, used string
}

// newIdentity returns the identity with the names of the program, as far as the API server
// accepts them. repairs are the changes.
func newIdentity(controller, instance string) (id identity, repairs []repair) {
	id.controller = qualifiedName(controller)
	if id.controller != controller {
		repairs = append(repairs, repair{"reportingController", controller, id.controller})
	}
	if instance == "" {
		host, err := os.Hostname()
		if err != nil || host == "" {
			host = unnamed
		}
		instance = id.controller + "-" + host
	}
	id.instance = shorten(strings.ToValidUTF8(instance, "-"), maxInstance)
	if id.instance != instance {
		repairs = append(repairs, repair{"reportingInstance", instance, id.instance})
	}
	return id, repairs
}

// notInName matches the characters that the name of a reporting controller cannot have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// qualifiedName returns s if kube-apiserver accepts it as the name of a reporting
// controller, and otherwise a similar name: one of at most 63 bytes, with a DNS subdomain
// before it if there is a slash.
func qualifiedName(s string) string {
	if len(validation.IsQualifiedName(s)) == 0 {
		return s
	}
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		prefix, name = "", s
	}
	name = trimPunctuation(notInName.ReplaceAllLiteralString(name, "-"))
	name = trimPunctuation(shorten(name, validation.LabelValueMaxLength))
	if name == "" {
		name = strings.ToLower(unnamed)
	}
	prefix = trimPunctuation(shorten(series.Subdomain(prefix), validation.DNS1123SubdomainMaxLength))
	if prefix == "" {
		return name
	}
	return prefix + "/" + name
}

// shorten returns s if it has at most limit bytes, and otherwise its beginning and
// a hash of all of it, so that two long names stay different.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	h := fnv.New32a()
	h.Write([]byte(s)) // never fails
	sum := fmt.Sprintf("-%08x", h.Sum32())
	end := limit - len(sum)
	return trimPunctuation(strings.ToValidUTF8(s[:end], "")) + sum
}

func trimPunctuation(s string) string { return strings.Trim(s, "-_.") }
