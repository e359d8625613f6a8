package series

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Key identifies isomorphic events: two occurrences with the same key belong to the
// same series. It is comparable.
//
// It consists of the tuple of the design "Make Kubernetes Events useful and safe"
// ([KEP-383]), and of the type, so that a Warning does not vanish in a series of
// Normals. The resourceVersion of an object is part of no key.
//
// [KEP-383]: https://github.com/kubernetes/enhancements/tree/master/keps/sig-instrumentation/383-new-event-api-ga-graduation
type Key struct {
	// Regarding is the object that the event is about.
	Regarding Reference
	// Related is a second object; the zero Reference if there is none.
	Related Reference
	// Type is Normal or Warning.
	Type string
	// Action is what the controller did or tried.
	Action string
	// Reason is why.
	Reason string
	// ReportingController is the name of the controller that emits the event.
	ReportingController string
	// ReportingInstance is the process of that controller. It is empty if all
	// processes of the controller share their series.
	ReportingInstance string
	// Note is empty, unless notes distinguish the series of one tuple. Then it is the
	// note of the series, or [CombinedPrefix].
	Note string
}

// hash returns 64 bits that are the same for equal keys and salts in every process and every
// version, because the names of Events contain them. It is the beginning of a
// SHA-256. A collision costs a longer name and nothing else.
func (k *Key) hash(salt int) uint64 {
	fields := []string{
		k.Regarding.APIVersion, k.Regarding.Kind, k.Regarding.Namespace,
		k.Regarding.Name, string(k.Regarding.UID), k.Regarding.FieldPath,
		k.Related.APIVersion, k.Related.Kind, k.Related.Namespace,
		k.Related.Name, string(k.Related.UID), k.Related.FieldPath,
		k.Type, k.Action, k.Reason, k.ReportingController, k.ReportingInstance, k.Note,
	}
	if k.Note == "" {
		fields = fields[:len(fields)-1]
	}
	buf := make([]byte, 0, 512)
	// The length of each string goes before it, so that moving a character from one
	// field to the next makes another key.
	for _, s := range fields {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	if salt > 0 {
		// No string is that long, so no other key has these bytes.
		buf = binary.AppendUvarint(buf, math.MaxUint64-uint64(salt))
	}
	sum := sha256.Sum256(buf)
	return binary.BigEndian.Uint64(sum[:])
}
