package tracker

import (
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What happens every 7 minutes is never a series: each time it is one create,
// with a name that no Event has which may still be there.
func TestEverySevenMinutes(t *testing.T) {
	table := NewTable(Options{}, start)
	k := testKey("a")
	expires := map[string]time.Time{}
	creates, base := 0, 0
	for at := time.Duration(0); at <= 6*time.Hour; at += 7 * time.Minute {
		now := start.Add(at)
		eff := table.Observe(k, Occurrence{}, now)
		require.Len(t, eff.Dirty, 1)
		e := eff.Dirty[0]
		w, _, ok := table.Begin(e, now)
		require.True(t, ok)
		require.Equal(t, WriteCreate, w.Kind)
		require.Equal(t, series.Singleton, w.Series.State)
		if w.Series.Name == k.BaseName() {
			base++
		}
		until, used := expires[w.Series.Name]
		require.False(t, used && now.Before(until), "%s: the name %s is taken until %s", now, w.Series.Name, until)
		expires[w.Series.Name] = now.Add(DefaultEventTTL)
		again, _ := table.Written(e, w, now)
		require.False(t, again)
		creates++
		if at%(14*time.Minute) == 0 {
			// Whether the deadline is kept, or the next occurrence finds out.
			eff = table.Expire(e, now.Add(DefaultWindow))
			require.Empty(t, eff.Dirty)
		}
		checkInvariants(t, table, 1)
	}
	assert.Equal(t, 52, creates)
	assert.Equal(t, 6, base, "the base name is used again when its Event has expired")
}

// What happens every 5 minutes is one series.
func TestEveryFiveMinutes(t *testing.T) {
	w := newWorld(t, Options{})
	w.see("a", "", 0)
	w.begin("a/1", 0)
	w.answer("a/1", 0)
	n := 1
	for at := 5 * time.Minute; at <= 6*time.Hour; at += 5 * time.Minute {
		n++
		w.expire("a/1", at-time.Microsecond)
		w.see("a", "", at)
	}
	require.Equal(t, []string{"a/1"}, w.order)
	end := 6*time.Hour + DefaultWindow
	w.begin("a/1", end-time.Microsecond)
	w.answer("a/1", end-time.Microsecond)
	assert.NotEmpty(t, w.expire("a/1", end))
	w.begin("a/1", end)
	assert.Equal(t, n, int(w.inFlight[w.entry("a/1")].Series.Count))
	w.answer("a/1", end)
	w.check()
}
