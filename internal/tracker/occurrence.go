package tracker

import (
	"maps"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/eventseries/eventseries/series"
)

// MaxAnnotationBytes is how many bytes of its callers' annotations a series stores: a quarter of what
// the API server allows for all annotations of an object.
const MaxAnnotationBytes = apivalidation.TotalAnnotationSizeLimitB / 4

// Occurrence is what a caller says about one occurrence in addition to its key.
type Occurrence struct {
	// Note is the text for people. If empty, the series keeps the one it has.
	Note string
	// Combined is Note in a series of different notes. If empty, see DistinctNotes.
	Combined string
	// DistinctNotes is how many series of the same tuple can differ in nothing but the note in their
	// keys. Once so many are tracked, the rest share one series, whose note begins with
	// series.CombinedPrefix. It has no effect for a key without a note.
	DistinctNotes int
	// Instance is the reportingInstance of a new Event, if the key has none.
	Instance string
	// Annotations are put on the Event, without keys that begin with series.AnnotationPrefix.
	Annotations map[string]string
}

// noteOf returns the note that e takes from an occurrence.
func (e *Entry) noteOf(o *Occurrence) string {
	if shared := e.key.rare.note == "" || e.key.rare.note == series.CombinedPrefix; shared && o.Combined != "" {
		return o.Combined
	}
	return o.Note
}

// mergeAnnotations returns old with latest applied, as the server has it after both were patched in.
// It changes neither map, because writes in flight share them. Annotations that would exceed
// MaxAnnotationBytes are ignored: a patch removes nothing, so keys that never recur would fill the
// memory and the Event.
func mergeAnnotations(old, latest map[string]string) map[string]string {
	merged, copied := old, false
	for k, v := range latest {
		if had, ok := old[k]; ok && had == v || strings.HasPrefix(k, series.AnnotationPrefix) {
			continue
		}
		if !copied {
			merged, copied = make(map[string]string, len(old)+len(latest)), true
			maps.Copy(merged, old)
		}
		merged[strings.Clone(k)] = strings.Clone(v)
	}
	size := 0
	for k, v := range merged {
		size += len(k) + len(v)
	}
	if size > MaxAnnotationBytes {
		return old
	}
	return merged
}
