package tracker

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The order of eviction is in testdata/scripts/05-evict.txt and 06-closing.txt.

func TestLongestIdle(t *testing.T) {
	var list idleList
	none := list.longestIdle(func(*Entry) time.Duration { return 0 })
	assert.Nil(t, none)

	rng := rand.New(rand.NewPCG(1, 2))
	var entries []*Entry
	for i := range 200 {
		e := &Entry{}
		e.tally.occurred(time.Duration(i) * time.Microsecond)
		entries = append(entries, e)
		list.insert(e, e.last())
	}
	for len(entries) > 0 {
		for range 20 {
			e := entries[rng.IntN(len(entries))]
			e.tally.occurred(e.last() + time.Duration(rng.IntN(100))*time.Microsecond)
		}
		want := entries[0].last()
		for _, e := range entries {
			want = min(want, e.last())
		}
		e := list.longestIdle((*Entry).last)
		require.Equal(t, want, e.last())
		list.remove(e)
		for i := range entries {
			if entries[i] == e {
				entries = append(entries[:i], entries[i+1:]...)
				break
			}
		}
	}
}

// Entries in a hot loop occur again while they are looked at. The search ends
// all the same, and looks at each of them about once.
func TestLongestIdleInHotLoops(t *testing.T) {
	var list idleList
	for i := range 100 {
		list.insert(&Entry{}, time.Duration(i))
	}
	looks := 0
	e := list.longestIdle(func(e *Entry) time.Duration {
		looks++
		return time.Hour + time.Duration(looks)
	})
	assert.NotNil(t, e)
	assert.LessOrEqual(t, looks, 100)
}

// A flood of keys that never recur stays within the bounds, and what is written
// and forgotten leaves nothing behind.
func TestFloodIsBounded(t *testing.T) {
	const capacity = 50
	table := NewTable(Options{Capacity: capacity}, start)
	now := start
	dropped := 0
	for i := range 20 * capacity {
		now = now.Add(time.Millisecond)
		k := testKey("a")
		k.Reason = fmt.Sprint("Random", i)
		for range 1 + i%2 {
			for _, d := range table.Observe(k, Occurrence{}, now).Dropped {
				dropped += d.Count
			}
		}
		if i%capacity == 0 {
			checkInvariants(t, table, 0)
		}
	}
	active, closing := table.Len()
	assert.Equal(t, capacity, active)
	assert.LessOrEqual(t, closing, capacity)
	assert.Positive(t, dropped)

	for range 2 { // what Flush does not see is made dirty by the end
		for _, p := range table.Flush() {
			for {
				w, _, ok := table.Begin(p.Entry, now)
				if !ok {
					break
				}
				table.Written(p.Entry, w, now)
			}
		}
		now = now.Add(DefaultWindow)
		for i := range table.shards {
			for _, e := range table.shards[i].all() {
				table.Expire(e, now)
			}
		}
	}
	checkInvariants(t, table, 0)
	active, closing = table.Len()
	assert.Zero(t, active+closing)
	for p := range table.lists {
		assert.Empty(t, table.lists[p])
	}
	assert.Zero(t, table.detached.n)
}
