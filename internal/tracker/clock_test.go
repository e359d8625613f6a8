package tracker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/wallclock"
	"github.com/eventseries/eventseries/series"
)

// A wall clock that is set ends no series and keeps none, and what the server
// is told does not go back.
func TestWallClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			begin := time.Now()
			table := NewTable(Options{}, begin)
			k := testKey("a")
			write := func(e *Entry, now time.Time) Write {
				t.Helper()
				w, _, ok := table.Begin(e, now)
				require.True(t, ok)
				table.Written(e, w, now)
				assert.False(t, w.Series.Last.Before(w.Series.First), "%s before %s", w.Series.Last, w.Series.First)
				return w
			}

			e := table.Observe(k, Occurrence{}, begin).Dirty[0]
			table.Observe(k, Occurrence{}, begin.Add(time.Minute))
			before := write(e, begin.Add(time.Minute))

			now := wallclock.Set(begin.Add(5*time.Minute), by)
			assert.Empty(t, table.Expire(e, now).Ended)
			_, counted, _ := table.Count(k, now)
			assert.True(t, counted)
			status, ok := table.Status(e, now)
			require.True(t, ok)
			assert.Less(t, now.Sub(status.Last), time.Microsecond)
			assert.GreaterOrEqual(t, now.Sub(status.Last), time.Duration(0))
			assert.Equal(t, 4*time.Minute, now.Sub(status.Written))
			table.Beat(e)
			after := write(e, now)
			assert.False(t, after.Series.Last.Before(before.Series.Last))
			if by > 0 {
				assert.Equal(t, now.UnixMicro(), after.Series.Last.UnixMicro(), "the new time is believed")
			} else {
				assert.Equal(t, before.Series.Last, after.Series.Last)
			}

			// It is set right again.
			now = begin.Add(6 * time.Minute)
			_, counted, _ = table.Count(k, now)
			assert.True(t, counted)
			table.Beat(e)
			assert.False(t, write(e, now).Series.Last.Before(after.Series.Last))

			now = wallclock.Set(begin.Add(12*time.Minute-time.Microsecond), by)
			assert.Empty(t, table.Expire(e, now).Ended)
			now = wallclock.Set(begin.Add(12*time.Minute), by)
			assert.Len(t, table.Expire(e, now).Ended, 1)
			assert.False(t, write(e, now).Series.Last.Before(after.Series.Last))
			checkInvariants(t, table, 0)
		})
	}
}

// The first write comes after the clock was set back, so that the first
// occurrence lies in the future. The latest is not before it all the same.
func TestWallClockIsSetBeforeTheFirstWrite(t *testing.T) {
	begin := time.Now()
	table := NewTable(Options{}, begin)
	k := testKey("a")
	e := table.Observe(k, Occurrence{}, begin).Dirty[0]
	now := wallclock.Set(begin.Add(time.Minute), -time.Hour)
	table.Observe(k, Occurrence{}, now)
	w, _, ok := table.Begin(e, now)
	require.True(t, ok)
	assert.Equal(t, WriteCreate, w.Kind)
	assert.EqualValues(t, 2, w.Series.Count)
	assert.Equal(t, begin.UnixMicro(), w.Series.First.UnixMicro())
	assert.Equal(t, w.Series.First, w.Series.Last)
	_, err := series.FromEvent(w.Series.Event())
	assert.NoError(t, err)
}

// The server may have made a write whose answer was lost. The clocks that say the
// wall time and how much time has passed differ by a little each time that they
// are read, so the same occurrence must not be told a moment earlier the next
// time.
func TestWallClockIsSetAfterALostAnswer(t *testing.T) {
	begin := time.Now()
	table := NewTable(Options{}, begin)
	k := testKey("a")
	e := table.Observe(k, Occurrence{}, begin).Dirty[0]
	table.Observe(k, Occurrence{}, begin.Add(time.Minute))
	lost, _, ok := table.Begin(e, begin.Add(time.Minute))
	require.True(t, ok)
	table.Failed(e, lost)
	again, _, ok := table.Begin(e, wallclock.Set(begin.Add(time.Minute), -time.Second))
	require.True(t, ok)
	assert.Equal(t, lost.Series.Last, again.Series.Last)
}

// Where times have no monotonic reading, a clock that is set back cannot be told
// from a caller that is late. The series goes on.
func TestWallClockAlone(t *testing.T) {
	w := newWorld(t, Options{})
	w.see("a", "", time.Hour)
	w.see("a", "", time.Hour)
	w.begin("a/1", time.Hour)
	w.answer("a/1", time.Hour)

	assert.Equal(t, "counted a/1", w.see("a", "", time.Minute))
	assert.Empty(t, w.expire("a/1", 10*time.Minute))
	w.beat("a/1")
	assert.Equal(t, "heartbeat Ongoing x3 base 1h0m0s to 1h0m0s", w.begin("a/1", 10*time.Minute))
	w.answer("a/1", 10*time.Minute)

	// It is kept for as long as the clock was set back, and not for ever.
	assert.Empty(t, w.expire("a/1", time.Hour))
	assert.NotEmpty(t, w.expire("a/1", time.Hour+DefaultWindow))
	w.check()
}
