package tracker

import (
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What becomes of an Event that was listed is in testdata/scripts/15-restore.txt.

// However old a running series is, and wherever in its interval, its next heartbeat
// is after now, at most an interval away, and before it would be taken for dead.
func TestRestoreSpread(t *testing.T) {
	k := testKey("a")
	for age := time.Duration(0); age < 36*time.Minute; age += time.Minute {
		before := time.Duration(0)
		for _, spread := range []float64{0.999999, 0.75, 0.5, 0.25, 0} {
			table := NewTable(Options{}, start)
			found := &series.Series{
				Key: *k, State: series.Ongoing, Namespace: "ns", Name: k.BaseName(), Count: 7,
				First: start.Add(-time.Hour), Last: start.Add(-age),
			}
			e, eff := table.Restore(found, spread, start)
			require.NotNil(t, e)
			require.Empty(t, eff)
			status, ok := table.Status(e, start)
			require.True(t, ok)
			left := status.Written.Add(DefaultHeartbeat).Sub(start)
			assert.Greater(t, left, before)
			assert.LessOrEqual(t, left, DefaultHeartbeat)
			assert.LessOrEqual(t, left+age, DefaultHeartbeat+DefaultWindow)
			before = left
		}
	}
}

// Dead ones of any age are closed, and are the first to go if there is no room.
func TestRestoreLongDead(t *testing.T) {
	for _, last := range []time.Time{{}, start.AddDate(-1000, 0, 0), start.Add(-36 * time.Minute)} {
		table := NewTable(Options{}, start)
		k := testKey("a")
		found := &series.Series{
			Key: *k, State: series.Ongoing, Namespace: "ns", Name: k.BaseName(), Count: 7, First: last, Last: last,
		}
		e, eff := table.Restore(found, 0, start)
		require.NotNil(t, e)
		assert.Equal(t, []*Entry{e}, eff.Dirty)
		checkInvariants(t, table, 0)
		_, ok := table.Status(e, start)
		assert.False(t, ok, "it has no deadlines")
		w, _, ok := table.Begin(e, start)
		require.True(t, ok)
		assert.Equal(t, WriteFinish, w.Kind)
		assert.Equal(t, series.Finished, w.Series.State)
		assert.Equal(t, found.Last.UnixMicro(), w.Series.Last.UnixMicro())
	}
}

// A table that is full, in either way, takes nothing, and loses nothing for it.
func TestRestoreIntoFullTable(t *testing.T) {
	table := NewTable(Options{Capacity: 1}, start)
	table.Observe(testKey("x"), Occurrence{}, start)
	table.Observe(testKey("x"), Occurrence{}, start)
	table.Observe(testKey("y"), Occurrence{}, start) // x is evicted, and waits for its create
	active, closing := table.Len()
	require.Equal(t, []int{1, 1}, []int{active, closing})
	for _, age := range []time.Duration{time.Minute, time.Hour} {
		k := testKey("a")
		e, eff := table.Restore(&series.Series{
			Key: *k, State: series.Ongoing, Namespace: "ns", Name: k.BaseName(), Count: 7,
			First: start.Add(-2 * time.Hour), Last: start.Add(-age),
		}, 0, start)
		assert.Nil(t, e)
		assert.Empty(t, eff)
	}
	checkInvariants(t, table, 0)
}
