package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
)

func TestFormsSayTheSame(t *testing.T) {
	want := newSubject("ObjectReference", true, 7)
	for _, form := range Forms {
		got := newSubject(form, true, 7)
		for _, pair := range [][2]*object{{want.regarding, got.regarding}, {want.related, got.related}} {
			a, err := reference.GetReference(scheme.Scheme, pair[0].Object)
			require.NoError(t, err)
			b, err := reference.GetReference(scheme.Scheme, pair[1].Object)
			require.NoError(t, err)
			assert.Equal(t, a, b, form)
			assert.Equal(t, referenceTo(pair[0]), referenceTo(pair[1]), form)
		}
	}
}

func TestObjectsDiffer(t *testing.T) {
	const n = 100_000
	names, uids := make(map[string]bool, n), make(map[string]bool, n)
	for i := range n {
		p := podNames(i)
		names[p.name], uids[p.uid] = true, true
		require.Len(t, p.uid, 36)
	}
	assert.Len(t, names, n)
	assert.Len(t, uids, n)
}

func TestStrideReachesAll(t *testing.T) {
	for _, n := range []int{1, 2, 7, 1000, 100_000} {
		seen := make([]bool, n)
		at, stride := 0, strideFor(n)
		for range n {
			require.False(t, seen[at])
			seen[at] = true
			at = (at + stride) % n
		}
	}
}
