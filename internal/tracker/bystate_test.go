package tracker

import (
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestByState(t *testing.T) {
	now := time.Unix(1e9, 0)
	table := NewTable(Options{}, now)
	var entries []*Entry
	occur := func(name string) {
		key := series.Key{Regarding: series.Reference{Name: name}, Type: "Normal", Reason: "R", Action: "A"}
		entries = append(entries, table.Observe(&key, Occurrence{}, now).Dirty...)
	}
	check := func(singletons, ongoing, closing int) {
		t.Helper()
		s, o, c := table.ByState()
		assert.Equal(t, [3]int{singletons, ongoing, closing}, [3]int{s, o, c})
	}
	check(0, 0, 0)
	occur("a")
	occur("b")
	check(2, 0, 0)
	occur("a")
	check(1, 1, 0)
	for _, e := range entries[:2] { // it makes no difference what the server knows
		w, _, ok := table.Begin(e, now)
		require.True(t, ok)
		check(1, 1, 0)
		again, _ := table.Written(e, w, now)
		require.False(t, again)
	}
	check(1, 1, 0)
	now = now.Add(time.Hour)
	for _, e := range entries[:2] {
		table.Expire(e, now)
	}
	check(0, 0, 1)
	table.Clear("Test")
	check(0, 0, 0)
}
