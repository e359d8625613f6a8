package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A hot loop makes no garbage.
func TestCountAllocatesNothing(t *testing.T) {
	table := NewTable(Options{}, start)
	k := testKey("a")
	table.Observe(k, Occurrence{}, start)
	table.Observe(k, Occurrence{}, start)
	now := start
	allocs := testing.AllocsPerRun(1000, func() {
		now = now.Add(time.Millisecond)
		if _, counted, _ := table.Count(k, now); !counted {
			t.Fatal("not counted")
		}
	})
	assert.Zero(t, allocs)

	// Nor does one whose note is looked at, where the note is there already.
	e, _, _ := table.Count(k, now)
	require.NotNil(t, e)
	allocs = testing.AllocsPerRun(1000, func() { table.Describe(e, Occurrence{Note: "later"}, now) })
	assert.Zero(t, allocs)

	// Nor does a key that is made on the stack.
	allocs = testing.AllocsPerRun(1000, func() {
		own := *k
		if _, counted, _ := table.Count(&own, now); !counted {
			t.Fatal("not counted")
		}
	})
	assert.Zero(t, allocs)
}
