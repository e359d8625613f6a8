package tracker

import (
	"cmp"
	"hash/maphash"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// internedKey is a series.Key as an Entry stores it: what many series have in common is stored once,
// and what few have, separately. It takes 48 bytes; a Key takes 288. All strings are copies: those of
// the caller can be parts of longer ones.
type internedKey struct {
	shared *words
	object
	rare *rareWords // noRareWords for most keys
}

// words are what many keys share, such as the reason.
type words struct {
	regarding, related                              kind
	eventType, action, reason, controller, instance string
	// reporter is the reportingInstance of Events. It is not part of the key, and equal to
	// instance if that is not empty.
	reporter  string
	elsewhere string // the namespace of Events about cluster-scoped objects
	row       *Tally // where their occurrences are counted
}

// kind is what references to objects of one kind have in common; object distinguishes them.
type (
	kind   struct{ apiVersion, kind, fieldPath string }
	object struct {
		namespace unique.Handle[string]
		names     string // the name and the UID
		name      int32  // the length of the name
	}
)

func kindOf(r *series.Reference) kind { return kind{r.APIVersion, r.Kind, r.FieldPath} }

func objectOf(r *series.Reference) object {
	names := strings.Join([]string{r.Name, string(r.UID)}, "") // a copy, also if one is empty
	return object{unique.Make(r.Namespace), names, int32(len(r.Name))}
}

// reference returns the reference to an object of kind k.
func (k *kind) reference(to *object) series.Reference {
	return series.Reference{
		APIVersion: k.apiVersion, Kind: k.kind, Namespace: to.namespace.Value(),
		Name: to.names[:to.name], UID: types.UID(to.names[to.name:]), FieldPath: k.fieldPath,
	}
}

// isOf reports whether r is the reference to an object of kind k.
func (k *kind) isOf(r *series.Reference, to *object) bool {
	return to.names[:to.name] == r.Name && to.names[to.name:] == string(r.UID) && to.namespace.Value() == r.Namespace &&
		k.kind == r.Kind && k.apiVersion == r.APIVersion && k.fieldPath == r.FieldPath
}

// rareWords are what few keys have.
type rareWords struct {
	related object
	note    string // what distinguishes the key from others of its tuple, if anything
}

var noRareWords = rareWords{related: objectOf(&series.Reference{})}

// intern returns the interned form of k, whose Events have the reportingInstance reporter, or that of k.
func (t *table) intern(k *series.Key, reporter string) internedKey {
	c := internedKey{object: objectOf(&k.Regarding), rare: &noRareWords}
	if !k.Related.IsZero() || k.Note != "" {
		c.rare = &rareWords{objectOf(&k.Related), strings.Clone(k.Note)}
	}
	common := words{
		kindOf(&k.Regarding), kindOf(&k.Related),
		k.Type, k.Action, k.Reason, k.ReportingController, k.ReportingInstance, cmp.Or(reporter, k.ReportingInstance), t.opts.ClusterNamespace, t.tallies.row(k),
	}
	if c.shared = t.words[common]; c.shared == nil {
		own := unique.Make(common).Value() // copies of the strings
		c.shared = &own
		remember(t.words, own, c.shared)
	}
	return c
}

// full returns the key.
func (c *internedKey) full() series.Key {
	s := c.shared
	return series.Key{
		Regarding: s.regarding.reference(&c.object), Related: s.related.reference(&c.rare.related),
		Type: s.eventType, Action: s.action, Reason: s.reason,
		ReportingController: s.controller, ReportingInstance: s.instance, Note: c.rare.note,
	}
}

// is reports whether c is the interned form of k.
func (c *internedKey) is(k *series.Key) bool { return c.rare.note == k.Note && c.isOfTuple(k) }

// isOfTuple reports whether c is the interned form of k or of another key of the same tuple.
func (c *internedKey) isOfTuple(k *series.Key) bool {
	s := c.shared
	return s.reason == k.Reason && s.action == k.Action && s.eventType == k.Type &&
		s.controller == k.ReportingController && s.instance == k.ReportingInstance &&
		s.regarding.isOf(&k.Regarding, &c.object) && s.related.isOf(&k.Related, &c.rare.related)
}

// hashOf returns the hash by which a key is found. Keys that differ in nothing but their notes have
// the same, and are found together. Fields of which there are few combinations for one object are left
// out: each controller that reports the same about one object costs 15 ns.
//
// It hashes each string by itself, because a processor does several at a time. maphash.Comparable
// chains them, and takes longer.
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

// mix adds the hash of s to h, the hash of the fields before. The factor, 2^64 divided by the golden
// ratio, makes the position of a field matter.
func mix(h uint64, seed maphash.Seed, s string) uint64 {
	const factor = 0x9e3779b97f4a7c15
	if s != "" {
		h ^= maphash.String(seed, s)
	}
	return h * factor
}
