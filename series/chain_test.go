package series

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Keys with the same hash in the table are chained. maphash cannot be made to
// clash, so this works on a shard alone.
func TestChain(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		s := &shard{entries: map[uint64]*Entry{}}
		entries := make([]*Entry, 3)
		for i, name := range []string{"a", "b", "c"} {
			entries[i] = &Entry{key: make(vocabulary).compact(testKey(name)), hash: 42, shard: s}
			s.insert(entries[i])
		}
		assert.Nil(t, s.find(42, testKey("d")))
		assert.Nil(t, s.find(43, testKey("a")))
		assert.Len(t, s.all(), 3)

		gone := map[int]bool{}
		for _, i := range order {
			s.remove(entries[i])
			gone[i] = true
			assert.Nil(t, entries[i].chain)
			for j, e := range entries {
				if gone[j] {
					e = nil
				}
				k := entries[j].Key()
				require.Same(t, e, s.find(42, &k))
			}
		}
		assert.Empty(t, s.entries)
	}
}

// Two keys that clash in the table are counted each for itself.
func TestClash(t *testing.T) {
	table := NewTable(Options{}, start)
	a, b := testKey("a"), testKey("b")
	hash := a.FastHash(table.seed)
	other := &Entry{key: table.words.compact(b), hash: hash, shard: table.shard(hash), state: Ongoing, count: 7}
	other.shard.insert(other) // as if b hashed to the same
	e := table.Observe(a, Occurrence{}, start).Dirty[0]
	table.Observe(a, Occurrence{}, start)
	got, counted, _ := table.Count(a, start)
	require.True(t, counted)
	assert.Same(t, e, got)
	assert.EqualValues(t, 3, e.count)
	assert.EqualValues(t, 7, other.count)
	assert.Same(t, other, e.shard.find(hash, b))

	table.Expire(e, start.Add(DefaultWindow))
	assert.Nil(t, e.shard.find(hash, a))
	assert.Same(t, other, e.shard.find(hash, b))
}
