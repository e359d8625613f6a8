package series

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testKey returns a key for a Pod. A name in upper case is a Warning.
func testKey(name string) *Key {
	k := &Key{
		Regarding:           Reference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod-" + strings.ToLower(name), UID: "uid-1"},
		Type:                "Normal",
		Action:              "Starting",
		Reason:              "Started",
		ReportingController: "example.com/controller",
		ReportingInstance:   "controller-0",
	}
	if strings.ToUpper(name) == name {
		k.Type = "Warning"
	}
	return k
}

// fields returns pointers to the hashed fields of a key, in order.
func (k *Key) fields() []*string {
	return []*string{
		&k.Regarding.APIVersion, &k.Regarding.Kind, &k.Regarding.Namespace,
		&k.Regarding.Name, (*string)(&k.Regarding.UID), &k.Regarding.FieldPath,
		&k.Related.APIVersion, &k.Related.Kind, &k.Related.Namespace,
		&k.Related.Name, (*string)(&k.Related.UID), &k.Related.FieldPath,
		&k.Type, &k.Action, &k.Reason, &k.ReportingController, &k.ReportingInstance,
	}
}

// The names of Events contain the hash, so it must never change.
func TestHashIsGolden(t *testing.T) {
	full := &Key{}
	for i, field := range full.fields() {
		*field = strings.Repeat(string(rune('a'+i)), i+1)
	}
	for _, tt := range []struct {
		key      *Key
		hash     uint64
		baseName string
	}{
		{&Key{}, 0x0a88111852095cae, "0a88111852095cae"},
		{testKey("a"), 0x0bcd9d50f4bc4feb, "pod-a.0bcd9d50f4bc4feb"},
		{testKey("A"), 0x1890265525580052, "pod-a.1890265525580052"},
		{full, 0x4184972481f3889f, "dddd.4184972481f3889f"},
	} {
		assert.Equal(t, tt.hash, tt.key.hash(0))
		assert.Equal(t, tt.baseName, tt.key.Name(0))
	}
}

func TestHashCoversEachField(t *testing.T) {
	seen := map[uint64]int{testKey("a").hash(0): -1}
	for i := range testKey("a").fields() {
		k := testKey("a")
		*k.fields()[i] += "x"
		assert.NotContains(t, seen, k.hash(0), "field %d", i)
		seen[k.hash(0)] = i
		assert.NotEqual(t, *testKey("a"), *k)
	}
	// So does the border between two fields: the last byte of one moves to the next.
	for i := range len((&Key{}).fields()) - 1 {
		var before, after Key
		*before.fields()[i], *before.fields()[i+1] = "ab", "c"
		*after.fields()[i], *after.fields()[i+1] = "a", "bc"
		assert.NotEqual(t, before.hash(0), after.hash(0), "field %d", i)
		assert.False(t, isNamed(&before, after.Name(0)), "field %d", i)
		assert.False(t, isNamed(&after, before.Name(0)), "field %d", i)
	}

	// A note makes another series.
	noted := testKey("a")
	noted.Note = "x"
	assert.NotContains(t, seen, noted.hash(0))
	instance := testKey("a")
	instance.ReportingInstance += "x"
	assert.NotEqual(t, instance.hash(0), noted.hash(0))

	ref := &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "p", UID: "u", FieldPath: "spec", ResourceVersion: "1",
	}
	other := ref.DeepCopy()
	other.ResourceVersion = "2"
	assert.Equal(t, ReferenceOf(ref), ReferenceOf(other), "a reference has no resourceVersion")

	back := ReferenceOf(ref).ObjectReference()
	ref.ResourceVersion = ""
	assert.Equal(t, *ref, back)
	assert.True(t, ReferenceOf(nil).IsZero())
	assert.True(t, ReferenceOf(&corev1.ObjectReference{ResourceVersion: "1"}).IsZero())
	assert.False(t, ReferenceOf(ref).IsZero())
}
