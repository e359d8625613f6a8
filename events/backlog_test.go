package events

import (
	"testing"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/stretchr/testify/assert"
)

func TestBacklog(t *testing.T) {
	var b backlog
	at := func(second int) time.Time { return time.Unix(1e9+int64(second), 0) }
	check := func(n int, since time.Time) {
		t.Helper()
		gotN, got := b.state()
		assert.Equal(t, n, gotN)
		assert.Equal(t, since, got)
	}
	first, second := new(tracker.Entry), new(tracker.Entry)

	check(0, time.Time{})
	b.end(first, false, false, at(0)) // nobody knows it
	check(0, time.Time{})

	b.add(first, at(1))
	b.add(second, at(2))
	b.add(first, at(3))
	check(2, at(1))
	b.begin(first)
	check(2, at(1))
	b.end(first, true, true, at(4))
	check(2, at(1)) // it has failed, and still waits
	b.begin(first)
	b.end(first, true, false, at(5))
	check(2, at(2)) // it waits for something else
	b.begin(second)
	b.end(second, false, false, at(6))
	check(1, at(5))

	b.begin(first)
	b.add(first, at(7)) // meanwhile
	b.end(first, false, false, at(8))
	check(1, at(8))
	b.begin(first)
	b.end(first, false, false, at(9))
	check(0, time.Time{})

	b.begin(second)
	b.end(second, true, true, at(10))
	check(1, at(10))
}

// What an outage has made large is given back.
func TestBacklogShrinks(t *testing.T) {
	var b backlog
	entries := make([]tracker.Entry, backlogKeep+1)
	for i := range entries {
		b.add(&entries[i], time.Time{})
	}
	assert.NotNil(t, b.entries)
	for i := range entries {
		b.end(&entries[i], false, false, time.Time{})
	}
	assert.Nil(t, b.entries)
	b.add(&entries[0], time.Time{})
	b.end(&entries[0], false, false, time.Time{})
	assert.NotNil(t, b.entries, "what is small is kept")
}

// Whoever waits is told of, from the first attempt to the last.
func TestStatsWaiting(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		check := func(n int, longest time.Duration) {
			t.Helper()
			stats := w.broadcaster.Stats()
			assert.Equal(t, n, stats.Waiting)
			assert.Equal(t, longest, stats.LongestWait)
		}
		check(0, 0)
		w.server.script(always(statusError(500, 0)))
		w.emit(0)
		time.Sleep(10 * time.Second)
		check(1, 10*time.Second)
		w.emit(1)
		time.Sleep(20 * time.Second)
		check(2, 30*time.Second) // however often they were tried
		assert.Greater(t, w.broadcaster.Stats().Requests(), uint64(4))
		w.server.script(nil)
		w.flush(t)
		time.Sleep(time.Second)
		check(0, 0)
		for range 10 {
			w.emit(0)
		}
		time.Sleep(time.Second)
		check(0, 0)

		w.server.script(always(statusError(429, 0)))
		w.emit(2)
		time.Sleep(4 * time.Second)
		check(1, 4*time.Second)
		w.broadcaster.Shutdown()
		check(0, 0)
		assert.Zero(t, w.broadcaster.Stats().Queue)
	})
}
