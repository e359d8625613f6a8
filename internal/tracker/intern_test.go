package tracker

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

// wordsOf returns the place of each string in a key.
func wordsOf(k *series.Key) (places []reflect.Value) {
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		if v.Kind() == reflect.String {
			places = append(places, v)
			return
		}
		for i := range v.NumField() {
			walk(v.Field(i))
		}
	}
	walk(reflect.ValueOf(k).Elem())
	return places
}

// An interned key equals the key, whichever of its words that has, and no key that
// differs in any of them.
func TestIntern(t *testing.T) {
	v := newVocabulary()
	n := len(wordsOf(&series.Key{}))
	for missing := range n + 2 {
		var k series.Key
		for i, word := range wordsOf(&k) {
			if i != missing {
				word.SetString(string(rune('a' + i)))
			}
		}
		if missing > n { // most keys have none of these
			k.Related, k.Note, k.ReportingInstance = series.Reference{}, "", ""
		}
		c := v.intern(&k, "")
		require.Equal(t, k, c.full())
		assert.True(t, c.is(&k))
		assert.Equal(t, k.Note, c.note())
		assert.Equal(t, k.Type, c.eventType())

		for i := range n {
			other := k
			wordsOf(&other)[i].SetString("other")
			assert.False(t, c.is(&other), "without word %d, word %d differs", missing, i)
			assert.Equal(t, tupleKey(&other) == tupleKey(&k), c.isOfTuple(&other), "without word %d, word %d differs", missing, i)
			got := v.intern(&other, "")
			assert.Equal(t, other, got.full())
			v.release(&got)
		}
		v.release(&c)
		require.Empty(t, v.words)
		require.Empty(t, v.namespaces)
	}
}

// Keys that differ in nothing but the object share their other words.
func TestInternShares(t *testing.T) {
	v := newVocabulary()
	a, b, other := testKey("a"), testKey("b"), testKey("c")
	other.Reason = "Other"
	ca, cb, co := v.intern(a, ""), v.intern(b, ""), v.intern(other, "")
	assert.Same(t, ca.shared, cb.shared)
	assert.NotSame(t, ca.shared, co.shared)
	assert.Same(t, ca.namespace, cb.namespace)
	assert.Nil(t, ca.rare)
	v.release(&ca)
	assert.Len(t, v.words, 2)
	v.release(&cb)
	assert.Len(t, v.words, 1)
	assert.Equal(t, *a, ca.full(), "it stays valid")

	// The reportingInstance of Events is that of the key, if that has one.
	assert.Equal(t, a.ReportingInstance, ca.shared.value.reporter)
	anyInstance := v.intern(&series.Key{}, "controller-1")
	assert.Equal(t, "controller-1", anyInstance.shared.value.reporter)
}

// tupleKey returns k without what distinguishes series of the same tuple.
func tupleKey(k *series.Key) series.Key {
	tuple := *k
	tuple.Note = ""
	return tuple
}
