package series

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
)

// Key tells isomorphic events from others: two occurrences with the same key
// belong to the same series.
//
// It is the tuple of the design "Make Kubernetes Events useful and safe"
// (KEP-383) and the type, so that a Warning does not vanish inside a series of
// Normals. The note is no part of it, unless a program asks for that; see
// Occurrence.DistinctNotes. Key is comparable; the zero value is the key of nothing.
type Key struct {
	// Regarding is the object that the event is about.
	Regarding Reference
	// Related is a second object; the zero Reference where there is none.
	Related Reference
	// Type is Normal or Warning.
	Type string
	// Action is what was done or tried.
	Action string
	// Reason is why.
	Reason string
	// ReportingController is the name of the controller that emits.
	ReportingController string
	// ReportingInstance is the process of that controller.
	ReportingInstance string
	// Note is empty, unless series of the same tuple are told apart by their notes.
	// Then it is that of the series, or CombinedPrefix.
	Note string
}

// Hash returns 64 bits that are the same for equal keys in every process and
// every version: names of Events are made of it. It is the beginning of a
// SHA-256; a clash costs a longer name and nothing else.
func (k *Key) Hash() uint64 {
	// A length goes before each string, so that moving a character from one
	// field to the next makes another key.
	buf := make([]byte, 0, 512)
	add := func(s string) {
		buf = binary.AppendUvarint(buf, uint64(len(s)))
		buf = append(buf, s...)
	}
	for _, s := range [...]string{
		k.Regarding.APIVersion, k.Regarding.Kind, k.Regarding.Namespace,
		k.Regarding.Name, string(k.Regarding.UID), k.Regarding.FieldPath,
		k.Related.APIVersion, k.Related.Kind, k.Related.Namespace,
		k.Related.Name, string(k.Related.UID), k.Related.FieldPath,
		k.Type, k.Action, k.Reason, k.ReportingController, k.ReportingInstance,
	} {
		add(s)
	}
	if k.Note != "" {
		add(k.Note)
	}
	sum := sha256.Sum256(buf)
	return binary.BigEndian.Uint64(sum[:])
}

// FastHash returns 64 bits that are the same for equal keys under the same
// seed. It is for tables in memory: it differs from process to process. Keys that
// differ in their Note alone have the same, so that they are found together.
//
// The strings are hashed each for itself, since a processor does several at a time
// then. maphash.Comparable of the whole puts the hash of one into that of the next:
// with it, counting an occurrence in the table took 140 ns and not 115.
func (k *Key) FastHash(seed maphash.Seed) uint64 {
	h := k.Regarding.fastHash(seed, 0)
	h = k.Related.fastHash(seed, h)
	h = mix(h, seed, k.Type)
	h = mix(h, seed, k.Action)
	h = mix(h, seed, k.Reason)
	h = mix(h, seed, k.ReportingController)
	return mix(h, seed, k.ReportingInstance)
}

func (r *Reference) fastHash(seed maphash.Seed, h uint64) uint64 {
	h = mix(h, seed, r.APIVersion)
	h = mix(h, seed, r.Kind)
	h = mix(h, seed, r.Namespace)
	h = mix(h, seed, r.Name)
	h = mix(h, seed, string(r.UID))
	return mix(h, seed, r.FieldPath)
}

// mix adds the hash of s to h, which has those of the fields before. The factor,
// 2^64 divided by the golden ratio, makes it matter which field it is.
func mix(h uint64, seed maphash.Seed, s string) uint64 {
	const factor = 0x9e3779b97f4a7c15
	if s != "" {
		h ^= maphash.String(seed, s)
	}
	return h * factor
}
