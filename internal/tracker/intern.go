package tracker

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// internedKey is a series.Key as an Entry stores it: what many series have in
// common is stored once for all of them, and what few have, separately. It takes
// 56 bytes; a Key takes 288.
type internedKey struct {
	shared    *interned[words]
	namespace *interned[string] // of the regarding object
	name      string
	uid       types.UID
	rare      *rareWords // nil for most keys
}

// interned is a value that several keys have. An occurrence compares it in place: a
// unique.Handle would copy it first, which takes 18 ns for words.
type interned[T comparable] struct {
	value T
	uses  int // by how many entries; Tracker.mu guards it
	// taken is how many occurrences the entries have counted that no tally contains yet;
	// Tracker.mu guards it.
	taken uint64
}

// pool holds values, each once.
type pool[T comparable] map[T]*interned[T]

// take returns the interned value. The caller returns it with release.
func (p pool[T]) take(value T) *interned[T] {
	i := p[value]
	if i == nil {
		i = &interned[T]{value: value}
		p[value] = i
	}
	i.uses++
	return i
}

func (p pool[T]) release(i *interned[T]) {
	if i.uses--; i.uses == 0 {
		delete(p, i.value)
	}
}

// words are the strings that many keys share, such as the reason.
type words struct {
	regarding, related objectKind

	eventType, action, reason, controller, instance string

	// reporter is the reportingInstance of Events. It is not part of the key, and
	// equal to instance if that is not empty.
	reporter string
}

type objectKind struct{ apiVersion, kind, fieldPath string }

func (o *objectKind) isOf(r *series.Reference) bool {
	return o.kind == r.Kind && o.apiVersion == r.APIVersion && o.fieldPath == r.FieldPath
}

// rareWords are the strings that few keys have.
type rareWords struct {
	relatedNamespace *interned[string]
	relatedName      string
	relatedUID       types.UID
	note             string
}

// vocabulary holds what the keys that a tracker tracks have in common.
type vocabulary struct {
	words      pool[words]
	namespaces pool[string]
}

func newVocabulary() vocabulary { return vocabulary{pool[words]{}, pool[string]{}} }

// intern returns the interned form of k, whose Events have the given
// reportingInstance; if it is empty, that of the key. The caller returns it with
// release.
func (v *vocabulary) intern(k *series.Key, reporter string) internedKey {
	c := internedKey{
		shared: v.words.take(words{
			regarding:  objectKind{k.Regarding.APIVersion, k.Regarding.Kind, k.Regarding.FieldPath},
			related:    objectKind{k.Related.APIVersion, k.Related.Kind, k.Related.FieldPath},
			eventType:  k.Type,
			action:     k.Action,
			reason:     k.Reason,
			controller: k.ReportingController,
			instance:   k.ReportingInstance,
			reporter:   cmp.Or(reporter, k.ReportingInstance),
		}),
		namespace: v.namespaces.take(k.Regarding.Namespace),
		name:      k.Regarding.Name,
		uid:       k.Regarding.UID,
	}
	if k.Related.Namespace != "" || k.Related.Name != "" || k.Related.UID != "" || k.Note != "" {
		c.rare = &rareWords{
			relatedNamespace: v.namespaces.take(k.Related.Namespace),
			relatedName:      k.Related.Name,
			relatedUID:       k.Related.UID,
			note:             k.Note,
		}
	}
	return c
}

// release says that the entry with this key is forgotten. The key stays valid.
func (v *vocabulary) release(c *internedKey) {
	v.words.release(c.shared)
	v.namespaces.release(c.namespace)
	if c.rare != nil {
		v.namespaces.release(c.rare.relatedNamespace)
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
	if s := &c.shared.value; s.reason != k.Reason || s.action != k.Action || s.eventType != k.Type ||
		s.controller != k.ReportingController || s.instance != k.ReportingInstance ||
		!s.regarding.isOf(&k.Regarding) || !s.related.isOf(&k.Related) {
		return false
	}
	if r := c.rare; r != nil {
		return r.relatedName == k.Related.Name && r.relatedUID == k.Related.UID && r.relatedNamespace.value == k.Related.Namespace
	}
	return k.Related.Name == "" && k.Related.UID == "" && k.Related.Namespace == ""
}

// eventType returns the type of the key.
func (c *internedKey) eventType() string { return c.shared.value.eventType }

// note returns what distinguishes the key from others of its tuple, if anything.
func (c *internedKey) note() string {
	if c.rare == nil {
		return ""
	}
	return c.rare.note
}

// full returns the key.
func (c *internedKey) full() series.Key {
	s := &c.shared.value
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
