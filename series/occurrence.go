package series

import (
	"maps"
	"strings"
)

// MaxAnnotationBytes is how many bytes a series keeps of its callers' annotations. The
// API server allows 256 KiB for all annotations of an object.
const MaxAnnotationBytes = 64 << 10

// Occurrence is what a caller says of one occurrence beyond its key. The zero
// value says nothing.
type Occurrence struct {
	// Note is the text for people. If empty, the series keeps the one it has.
	Note string
	// Annotations are put on the Event. The table keeps the map, so it must not
	// be changed afterwards. Keys that begin with AnnotationPrefix are not taken.
	Annotations map[string]string
}

// mergeAnnotations returns old with latest put on top, as the server will have
// it after both were patched in. Neither is changed: writes in flight share
// them. Callers whose keys never recur would fill the memory, so past
// MaxAnnotationBytes what is old is forgotten.
func mergeAnnotations(old, latest map[string]string) map[string]string {
	same := true
	for k, v := range latest {
		if had, ok := old[k]; (!ok || had != v) && !strings.HasPrefix(k, AnnotationPrefix) {
			same = false
			break
		}
	}
	if same {
		return old
	}
	merged := make(map[string]string, len(old)+len(latest))
	maps.Copy(merged, old)
	maps.Copy(merged, latest)
	if size(merged) > MaxAnnotationBytes {
		merged = maps.Clone(latest)
	}
	maps.DeleteFunc(merged, func(k, _ string) bool { return strings.HasPrefix(k, AnnotationPrefix) })
	return merged
}

func size(annotations map[string]string) int {
	n := 0
	for k, v := range annotations {
		n += len(k) + len(v)
	}
	return n
}
