package events

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/stretchr/testify/assert"
)

func TestStats(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		assert.Equal(t, Stats{
			Capacity:  tracker.DefaultCapacity,
			Writes:    map[WriteKey]uint64{},
			Durations: map[string]Histogram{},
			Dropped:   map[DropReason]uint64{},
		}, w.broadcaster.Stats())
		for range 3 {
			w.emit(0)
			w.emit(1)
			time.Sleep(time.Second)
		}
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		w.flush(t)
		w.emit(2)
		w.flush(t)
		synctest.Wait() // the worker has yet to put down what it has written
		stats := w.broadcaster.Stats()
		assert.EqualValues(t, 3, stats.Durations["create"].Count)
		assert.EqualValues(t, 4, stats.Durations["patch"].Count)
		stats.Durations = nil
		assert.Equal(t, Stats{
			Occurrences:     8,
			Tracked:         3,
			Singletons:      1,
			Ongoing:         2,
			Capacity:        tracker.DefaultCapacity,
			Writes:          map[WriteKey]uint64{{"create", "written"}: 3, {"series", "written"}: 2, {"flush", "written"}: 2},
			Dropped:         map[DropReason]uint64{DropInvalidObject: 1},
			DistinctReasons: 1,
			DistinctActions: 1,
		}, stats)
		assert.EqualValues(t, 7, stats.Requests())

		time.Sleep(10 * time.Minute)
		stats = w.broadcaster.Stats()
		assert.Zero(t, stats.Tracked)
		assert.EqualValues(t, 2, stats.Writes[WriteKey{"finish", "written"}])

		// What is handed out is a copy.
		stats.Writes[WriteKey{"create", "written"}] = 1000
		stats.Dropped[DropRejected] = 1000
		assert.EqualValues(t, 3, w.broadcaster.Stats().Writes[WriteKey{"create", "written"}])
		assert.NotContains(t, w.broadcaster.Stats().Dropped, DropRejected)
	})
}

// Series that have ended and could not be written yet are told apart.
func TestStatsClosing(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		w.emit(0)
		w.flush(t)
		w.server.script(always(statusError(500, 0)))
		time.Sleep(7 * time.Minute)
		stats := w.broadcaster.Stats()
		assert.Equal(t, 1, stats.Tracked)
		assert.Equal(t, 1, stats.Closing)
		w.emit(0) // the next one
		stats = w.broadcaster.Stats()
		assert.Equal(t, 2, stats.Tracked)
		assert.Equal(t, 1, stats.Closing)
		w.server.script(nil)
	})
}

func TestLogLimit(t *testing.T) {
	l := logLimit{interval: time.Minute}
	now := time.Unix(1e9, 0)
	allow := func(kind string, at time.Duration, wantSkipped int, want bool) {
		t.Helper()
		skipped, ok := l.allow(kind, now.Add(at))
		assert.Equal(t, want, ok)
		assert.Equal(t, wantSkipped, skipped)
	}
	allow("a", 0, 0, true)
	allow("a", time.Second, 0, false)
	allow("b", time.Second, 0, true)
	allow("a", time.Minute-1, 0, false)
	allow("a", time.Minute, 2, true)
	allow("a", 2*time.Minute, 0, true)
}
