package tracker

import (
	"hash/maphash"
	"math/bits"

	"github.com/eventseries/eventseries/series"
)

// fastHash returns the hash by which a key is found. Equal keys have the same under the
// same seed, and so have keys that differ in nothing but their notes, which are found
// together.
//
// Fields of which there are few combinations for one object are left out: the kinds of
// the objects, the namespace of an object with a UID, the type of the event, the
// controller, and the instance. Each controller that reports the same about one object
// costs 15 ns.
//
// It hashes each string by itself, because a processor does several at a time.
// maphash.Comparable of the whole chains them, and takes longer.
func fastHash(seed maphash.Seed, k *series.Key) uint64 {
	h := hashReference(0, seed, &k.Regarding)
	h = mix(h, seed, k.Regarding.FieldPath)
	h = hashReference(h, seed, &k.Related)
	h = mix(h, seed, k.Action)
	return mix(h, seed, k.Reason)
}

func hashReference(h uint64, seed maphash.Seed, r *series.Reference) uint64 {
	if r.UID == "" {
		h = mix(h, seed, r.Namespace)
	}
	h = mix(h, seed, r.Name)
	return mix(h, seed, string(r.UID))
}

// nameHash returns a hash of the whole key, by which the tombstones know it. It differs
// if the names of the Events do.
func nameHash(seed maphash.Seed, k *series.Key) uint64 {
	h := fastHash(seed, k)
	h = mix(h, seed, k.Regarding.APIVersion)
	h = mix(h, seed, k.Regarding.Kind)
	h = mix(h, seed, k.Regarding.Namespace)
	h = mix(h, seed, k.Related.APIVersion)
	h = mix(h, seed, k.Related.Kind)
	h = mix(h, seed, k.Related.Namespace)
	h = mix(h, seed, k.Related.FieldPath)
	h = mix(h, seed, k.Type)
	h = mix(h, seed, k.ReportingController)
	h = mix(h, seed, k.ReportingInstance)
	return mix(h, seed, k.Note)
}

// mix adds the hash of s to h, the hash of the fields before. The factor, 2^64
// divided by the golden ratio, makes the position of a field matter.
func mix(h uint64, seed maphash.Seed, s string) uint64 {
	const factor = 0x9e3779b97f4a7c15
	if s != "" {
		h ^= maphash.String(seed, s)
	}
	return h * factor
}

// fraction returns a number from 0 to 1 that follows from hash.
func fraction(hash uint64) float64 { return float64(bits.Reverse64(hash)>>11) / (1 << 53) }
