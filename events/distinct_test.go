package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDistinct(t *testing.T) {
	var d distinct
	assert.Zero(t, d.count())
	for range 2 {
		d.add("a")
		d.add("b")
	}
	assert.Equal(t, 2, d.count())
	for i := range 2 * MaxDistinct {
		d.add(fmt.Sprint(i))
	}
	assert.Equal(t, MaxDistinct, d.count())
}

// A controller that puts into the reason what belongs into the note is found out. One
// whose loops are hot, or are about many objects, is not suspected.
func TestStatsDistinct(t *testing.T) {
	inBubble(t, Options{QPS: -1}, func(t *testing.T, w *world) {
		check := func(reasons, actions int) {
			t.Helper()
			stats := w.broadcaster.Stats()
			assert.Equal(t, reasons, stats.DistinctReasons)
			assert.Equal(t, actions, stats.DistinctActions)
		}
		check(0, 0)
		for pod := range 100 {
			w.emit(pod)
			w.emit(pod)
		}
		w.flush(t)
		check(1, 1)
		time.Sleep(time.Hour)
		w.emit(0)
		w.flush(t)
		check(1, 1)
		for i := range 50 {
			w.recorder.Eventf(testPod(0), nil, "Normal", fmt.Sprintf("FailedAfter%ds", i), "Testing", "note")
		}
		w.flush(t)
		check(51, 1)
		for i := range 10 {
			w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", fmt.Sprintf("Testing%d", i), "note")
		}
		w.flush(t)
		check(51, 11)
	})
}
