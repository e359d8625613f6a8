package events

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStats(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		assert.Equal(t, Stats{Writes: map[WriteKey]uint64{}, Dropped: map[DropReason]uint64{}}, w.broadcaster.Stats())
		for range 3 {
			w.emit(0)
			w.emit(1)
			time.Sleep(time.Second)
		}
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		w.flush(t)
		assert.Equal(t, Stats{
			Occurrences: 7,
			Tracked:     2,
			Writes:      map[WriteKey]uint64{{"create", "written"}: 2, {"series", "written"}: 2, {"flush", "written"}: 2},
			Dropped:     map[DropReason]uint64{DropInvalidObject: 1},
		}, w.broadcaster.Stats())
		assert.EqualValues(t, 6, w.broadcaster.Stats().Requests())

		time.Sleep(10 * time.Minute)
		stats := w.broadcaster.Stats()
		assert.Zero(t, stats.Tracked)
		assert.EqualValues(t, 2, stats.Writes[WriteKey{"finish", "written"}])

		// What is handed out is a copy.
		stats.Writes[WriteKey{"create", "written"}] = 1000
		stats.Dropped[DropRejected] = 1000
		assert.EqualValues(t, 2, w.broadcaster.Stats().Writes[WriteKey{"create", "written"}])
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
