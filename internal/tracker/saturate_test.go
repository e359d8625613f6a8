package tracker

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A count stays where the API has no room for more, while times go on.
func TestCountSaturates(t *testing.T) {
	table := NewTable(Options{}, start)
	k := testKey("a")
	e := table.Observe(k, Occurrence{}, start).Dirty[0]
	table.Observe(k, Occurrence{}, start)
	w, _, _ := table.Begin(e, start)
	table.Written(e, w, start)
	e.count = math.MaxInt32 - 2

	for i, want := range []int32{math.MaxInt32 - 1, math.MaxInt32, math.MaxInt32, math.MaxInt32} {
		now := start.Add(time.Duration(i+1) * time.Minute)
		_, counted, _ := table.Count(k, now)
		require.True(t, counted)
		table.Beat(e)
		w, _, ok := table.Begin(e, now)
		require.True(t, ok)
		assert.Equal(t, want, w.Series.Count)
		assert.Equal(t, now.UnixMicro(), w.Series.Last.UnixMicro())
		table.Written(e, w, now)
	}

	// The server knows the count, but not that there was another.
	table.Count(k, start.Add(5*time.Minute))
	require.Len(t, table.Flush(), 1)
	eff := table.Clear("Shutdown")
	assert.Empty(t, eff.Dropped)
}
