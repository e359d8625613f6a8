package tracker

import (
	"fmt"
	"hash/fnv"
	"hash/maphash"
	"math/bits"

	"github.com/eventseries/eventseries/series"
)

// seed makes the hashes of a tracker differ from those of others.
type seed struct {
	random maphash.Seed
	fixed  uint64 // if not zero, what hashes follow from instead
}

// newSeed returns a seed, which is random if fixed is zero.
func newSeed(fixed uint64) seed { return seed{maphash.MakeSeed(), fixed} }

// repeat returns a hash under a fixed seed. No seed makes package maphash return the same
// hashes in another process.
func (s seed) repeat(of ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %q", s.fixed, of)
	return h.Sum64()
}

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
func fastHash(seed seed, k *series.Key) uint64 {
	if seed.fixed != 0 {
		return seed.repeat(k.Regarding, k.Related, k.Action, k.Reason)
	}
	h := hashReference(0, seed.random, &k.Regarding)
	h = mix(h, seed.random, k.Regarding.FieldPath)
	h = hashReference(h, seed.random, &k.Related)
	h = mix(h, seed.random, k.Action)
	return mix(h, seed.random, k.Reason)
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
func nameHash(seed seed, k *series.Key) uint64 {
	if seed.fixed != 0 {
		return seed.repeat(*k)
	}
	h := fastHash(seed, k)
	h = mix(h, seed.random, k.Regarding.APIVersion)
	h = mix(h, seed.random, k.Regarding.Kind)
	h = mix(h, seed.random, k.Regarding.Namespace)
	h = mix(h, seed.random, k.Related.APIVersion)
	h = mix(h, seed.random, k.Related.Kind)
	h = mix(h, seed.random, k.Related.Namespace)
	h = mix(h, seed.random, k.Related.FieldPath)
	h = mix(h, seed.random, k.Type)
	h = mix(h, seed.random, k.ReportingController)
	h = mix(h, seed.random, k.ReportingInstance)
	return mix(h, seed.random, k.Note)
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
