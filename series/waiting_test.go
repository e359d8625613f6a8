package series

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A series waits from the occurrence that is to be written to the answer of the
// server, and not while occurrences are only counted.
func TestWaiting(t *testing.T) {
	table := NewTable(Options{}, start)
	assert.Zero(t, table.Waiting())
	k := testKey("a")
	e := table.Observe(k, Occurrence{}, start).Dirty[0]
	table.Observe(testKey("b"), Occurrence{}, start)
	assert.Equal(t, 2, table.Waiting())
	write := func() {
		t.Helper()
		w, _, ok := table.Begin(e, start)
		require.True(t, ok)
		table.Failed(e, w)
		assert.Equal(t, 2, table.Waiting(), "it has failed")
		w, _, ok = table.Begin(e, start)
		require.True(t, ok)
		assert.Equal(t, 2, table.Waiting(), "it is under way")
		table.Written(e, w, start)
		assert.Equal(t, 1, table.Waiting())
	}
	write()
	table.Observe(k, Occurrence{}, start)
	assert.Equal(t, 2, table.Waiting(), "it has become a series")
	write()
	_, counted, _ := table.Count(k, start)
	require.True(t, counted)
	assert.Equal(t, 1, table.Waiting(), "its heartbeat will tell")
	table.Beat(e)
	assert.Equal(t, 2, table.Waiting())
	write()
	table.Expire(e, start.Add(time.Hour))
	assert.Equal(t, 2, table.Waiting(), "it has ended, and is to be closed")
	write()
	table.Clear("Shutdown")
	assert.Zero(t, table.Waiting())
}
