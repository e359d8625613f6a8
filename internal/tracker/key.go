package tracker

import (
	"cmp"
	"hash/maphash"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// internedKey is a series.Key as an Entry stores it: what many series have in common is
// stored once for all of them, and what few have, separately. It takes 56 bytes; a Key takes
// 288. All strings are copies: those of the caller can be parts of longer ones.
type internedKey struct {
	shared    *words
	namespace *interned // of the regarding object
	name      string
	uid       types.UID
	rare      *rareWords // nil for most keys
}

// interned is a string that several keys have.
type interned struct {
	value string
	uses  int // by how many keys
}

// words are the strings that many keys share, such as the reason.
type words struct {
	wordKey
	uses int  // by how many keys
	row  *row // where their occurrences are counted
}

type wordKey struct {
	regarding, related objectKind

	eventType, action, reason, controller, instance string

	// reporter is the reportingInstance of Events. It is not part of the key, and
	// equal to instance if that is not empty.
	reporter string
}

type objectKind struct{ apiVersion, kind, fieldPath string }

func (o objectKind) clone() objectKind {
	return objectKind{strings.Clone(o.apiVersion), strings.Clone(o.kind), strings.Clone(o.fieldPath)}
}

func (o *objectKind) isOf(r *series.Reference) bool {
	return o.kind == r.Kind && o.apiVersion == r.APIVersion && o.fieldPath == r.FieldPath
}

// rareWords are the strings that few keys have.
type rareWords struct {
	relatedNamespace *interned
	relatedName      string
	relatedUID       types.UID
	note             string
}

// vocabulary holds what the keys of a table have in common.
type vocabulary struct {
	words      map[wordKey]*words
	namespaces map[string]*interned
}

func newVocabulary() vocabulary {
	return vocabulary{make(map[wordKey]*words), make(map[string]*interned)}
}

// intern returns the interned form of k, whose Events have the given reportingInstance; if
// it is empty, that of the key. The caller returns it with release. rowOf returns the row of
// new words.
func (v *vocabulary) intern(k *series.Key, reporter string, rowOf func(*series.Key) *row) internedKey {
	of := wordKey{
		regarding:  objectKind{k.Regarding.APIVersion, k.Regarding.Kind, k.Regarding.FieldPath},
		related:    objectKind{k.Related.APIVersion, k.Related.Kind, k.Related.FieldPath},
		eventType:  k.Type,
		action:     k.Action,
		reason:     k.Reason,
		controller: k.ReportingController,
		instance:   k.ReportingInstance,
		reporter:   cmp.Or(reporter, k.ReportingInstance),
	}
	w := v.words[of]
	if w == nil {
		of.regarding, of.related = of.regarding.clone(), of.related.clone()
		of.eventType, of.action, of.reason = strings.Clone(of.eventType), strings.Clone(of.action), strings.Clone(of.reason)
		of.controller, of.instance, of.reporter = strings.Clone(of.controller), strings.Clone(of.instance), strings.Clone(of.reporter)
		w = &words{wordKey: of, row: rowOf(k)}
		v.words[of] = w
	}
	w.uses++
	c := internedKey{
		shared:    w,
		namespace: v.namespace(k.Regarding.Namespace),
		name:      strings.Clone(k.Regarding.Name),
		uid:       types.UID(strings.Clone(string(k.Regarding.UID))),
	}
	if k.Related.Namespace != "" || k.Related.Name != "" || k.Related.UID != "" || k.Note != "" {
		c.rare = &rareWords{
			relatedNamespace: v.namespace(k.Related.Namespace),
			relatedName:      strings.Clone(k.Related.Name),
			relatedUID:       types.UID(strings.Clone(string(k.Related.UID))),
			note:             strings.Clone(k.Note),
		}
	}
	return c
}

func (v *vocabulary) namespace(name string) *interned {
	i := v.namespaces[name]
	if i == nil {
		i = &interned{value: strings.Clone(name)}
		v.namespaces[i.value] = i
	}
	i.uses++
	return i
}

// release says that the entry with this key is forgotten. The key stays valid.
func (v *vocabulary) release(c *internedKey) {
	if c.shared.uses--; c.shared.uses == 0 {
		delete(v.words, c.shared.wordKey)
	}
	v.releaseNamespace(c.namespace)
	if c.rare != nil {
		v.releaseNamespace(c.rare.relatedNamespace)
	}
}

func (v *vocabulary) releaseNamespace(i *interned) {
	if i.uses--; i.uses == 0 {
		delete(v.namespaces, i.value)
	}
}

// is reports whether c is the interned form of k.
func (c *internedKey) is(k *series.Key) bool { return c.note() == k.Note && c.isOfTuple(k) }

// isOfTuple reports whether c is the interned form of k or of another key of the
// same tuple.
func (c *internedKey) isOfTuple(k *series.Key) bool {
	if c.name != k.Regarding.Name || c.uid != k.Regarding.UID || c.namespace.value != k.Regarding.Namespace {
		return false
	}
	if s := c.shared; s.reason != k.Reason || s.action != k.Action || s.eventType != k.Type ||
		s.controller != k.ReportingController || s.instance != k.ReportingInstance ||
		!s.regarding.isOf(&k.Regarding) || !s.related.isOf(&k.Related) {
		return false
	}
	if r := c.rare; r != nil {
		return r.relatedName == k.Related.Name && r.relatedUID == k.Related.UID && r.relatedNamespace.value == k.Related.Namespace
	}
	return k.Related.Name == "" && k.Related.UID == "" && k.Related.Namespace == ""
}

// note returns what distinguishes the key from others of its tuple, if anything.
func (c *internedKey) note() string {
	if c.rare == nil {
		return ""
	}
	return c.rare.note
}

// full returns the key.
func (c *internedKey) full() series.Key {
	s := c.shared
	k := series.Key{
		Regarding: series.Reference{
			APIVersion: s.regarding.apiVersion, Kind: s.regarding.kind, FieldPath: s.regarding.fieldPath,
			Namespace: c.namespace.value, Name: c.name, UID: c.uid,
		},
		Related: series.Reference{
			APIVersion: s.related.apiVersion, Kind: s.related.kind, FieldPath: s.related.fieldPath,
		},
		Type:                s.eventType,
		Action:              s.action,
		Reason:              s.reason,
		ReportingController: s.controller,
		ReportingInstance:   s.instance,
	}
	if r := c.rare; r != nil {
		k.Related.Namespace, k.Related.Name, k.Related.UID = r.relatedNamespace.value, r.relatedName, r.relatedUID
		k.Note = r.note
	}
	return k
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
