package tracker

import (
	"cmp"
	"hash/maphash"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// internedKey is a series.Key as an Entry stores it: what many series have in common is
// stored once for all of them, and what few have, separately. It takes 56 bytes; a Key takes
// 288. All strings are copies: those of the caller can be parts of longer ones.
type internedKey struct {
	shared *words
	object
	rare *rareWords // nil for most keys
}

// words are what many keys share, such as the reason.
type words struct {
	wordKey
	handle unique.Handle[wordKey]
	uses   int  // by how many keys
	row    *row // where their occurrences are counted
}

type wordKey struct {
	series.Key // without what object and rareWords contain
	// reporter is the reportingInstance of Events. It is not part of the key, and equal to its
	// instance if that is not empty.
	reporter string
}

// object is what distinguishes the references to objects of one kind.
type object struct {
	namespace unique.Handle[string]
	name      string
	uid       types.UID
}

var nobody = takeObject(&series.Reference{})

// takeObject moves the object out of a reference.
func takeObject(r *series.Reference) object {
	names := strings.Join([]string{r.Name, string(r.UID)}, "") // a copy, also if one is empty
	o := object{unique.Make(r.Namespace), names[:len(r.Name)], types.UID(names[len(r.Name):])}
	r.Namespace, r.Name, r.UID = "", "", ""
	return o
}

func (o *object) putInto(r *series.Reference) {
	r.Namespace, r.Name, r.UID = o.namespace.Value(), o.name, o.uid
}

// is reports whether r is the reference to o with what it has in common with others.
func (o *object) is(r, common *series.Reference) bool {
	return o.name == r.Name && o.uid == r.UID && o.namespace.Value() == r.Namespace &&
		common.Kind == r.Kind && common.APIVersion == r.APIVersion && common.FieldPath == r.FieldPath
}

// rareWords are what few keys have.
type rareWords struct {
	related object
	note    string
}

// vocabulary holds what the keys of a table have in common.
type vocabulary map[unique.Handle[wordKey]]*words

// intern returns the interned form of k. Its Events have the given reportingInstance; if it is
// empty, that of k. Its occurrences count in row. The caller returns it with release.
func (v vocabulary) intern(k *series.Key, reporter string, row *row) internedKey {
	common := wordKey{*k, cmp.Or(reporter, k.ReportingInstance)}
	c := internedKey{object: takeObject(&common.Regarding)}
	if related := takeObject(&common.Related); related != nobody || k.Note != "" {
		c.rare = &rareWords{related, strings.Clone(k.Note)}
	}
	common.Note = ""
	handle := unique.Make(common) // copies the strings
	if c.shared = v[handle]; c.shared == nil {
		c.shared = &words{wordKey: handle.Value(), handle: handle, row: row}
		v[handle] = c.shared
	}
	c.shared.uses++
	return c
}

// release says that the entry with this key is forgotten. The key stays valid.
func (v vocabulary) release(c *internedKey) {
	if c.shared.uses--; c.shared.uses == 0 {
		delete(v, c.shared.handle)
	}
}

// full returns the key.
func (c *internedKey) full() series.Key {
	k := c.shared.Key
	c.putInto(&k.Regarding)
	c.related().putInto(&k.Related)
	k.Note = c.note()
	return k
}

// is reports whether c is the interned form of k.
func (c *internedKey) is(k *series.Key) bool { return c.note() == k.Note && c.isOfTuple(k) }

// isOfTuple reports whether c is the interned form of k or of another key of the
// same tuple.
func (c *internedKey) isOfTuple(k *series.Key) bool {
	s := c.shared
	return s.Reason == k.Reason && s.Action == k.Action && s.Type == k.Type &&
		s.ReportingController == k.ReportingController && s.ReportingInstance == k.ReportingInstance &&
		c.object.is(&k.Regarding, &s.Regarding) && c.related().is(&k.Related, &s.Related)
}

func (c *internedKey) related() *object {
	if c.rare == nil {
		return &nobody
	}
	return &c.rare.related
}

// note returns what distinguishes the key from others of its tuple, if anything.
func (c *internedKey) note() string {
	if c.rare == nil {
		return ""
	}
	return c.rare.note
}

// hashOf returns the hash by which a key is found. Equal keys have the same, and so have keys
// that differ in nothing but their notes, which are found together.
//
// Fields of which there are few combinations for one object are left out: the kinds of
// the objects, the namespace of an object with a UID, the type of the event, the
// controller, and the instance. Each controller that reports the same about one object
// costs 15 ns.
//
// It hashes each string by itself, because a processor does several at a time.
// maphash.Comparable of the whole chains them, and takes longer.
func hashOf(seed maphash.Seed, k *series.Key) uint64 {
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

// mix adds the hash of s to h, the hash of the fields before. The factor, 2^64
// divided by the golden ratio, makes the position of a field matter.
func mix(h uint64, seed maphash.Seed, s string) uint64 {
	const factor = 0x9e3779b97f4a7c15
	if s != "" {
		h ^= maphash.String(seed, s)
	}
	return h * factor
}
