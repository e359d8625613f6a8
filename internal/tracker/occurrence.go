package tracker

import (
	"maps"
	"strings"

	"github.com/eventseries/eventseries/series"
)

// Occurrence is what a caller says of one occurrence beyond its key. The zero
// value says nothing.
type Occurrence struct {
	// Note is the text for people. If empty, the series keeps the one it has.
	Note string
	// DistinctNotes is how many series of the same tuple may be told apart by their
	// notes, which their keys have then. As long as fewer than that are tracked,
	// another note begins a series of its own; from then on the rest share one, whose
	// note begins with CombinedPrefix. It is for programs that say in the note what
	// the events of a tuple differ by, and of no use for a key without a note.
	DistinctNotes int
	// Instance is the reportingInstance of a new Event, where instances share their
	// series and keys have none. Otherwise it is that of the key.
	Instance string
	// Annotations are put on the Event. The table keeps the map, so it must not
	// be changed afterwards. Keys that begin with AnnotationPrefix are not taken.
	Annotations map[string]string
}

// mergeAnnotations returns old with latest put on top, as the server will have
// it after both were patched in. Neither is changed: writes in flight share
// them.
//
// Callers whose keys never recur would fill the memory, and in the end the
// Event, so that the server refused it: a patch takes nothing away. So
// annotations that would lead past MaxAnnotationBytes are not taken.
func mergeAnnotations(old, latest map[string]string) map[string]string {
	same, bytes := true, size(old)
	for k, v := range latest {
		had, ok := old[k]
		if ok && had == v || strings.HasPrefix(k, series.AnnotationPrefix) {
			continue
		}
		same = false
		bytes += len(v) - len(had)
		if !ok {
			bytes += len(k)
		}
	}
	if same || bytes > series.MaxAnnotationBytes {
		return old
	}
	merged := make(map[string]string, len(old)+len(latest))
	maps.Copy(merged, old)
	for k, v := range latest {
		if !strings.HasPrefix(k, series.AnnotationPrefix) {
			merged[k] = v
		}
	}
	return merged
}

func size(annotations map[string]string) int {
	n := 0
	for k, v := range annotations {
		n += len(k) + len(v)
	}
	return n
}
