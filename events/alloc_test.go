package events

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// An occurrence of a running series is counted and nothing else: it allocates
// nothing, and formats nothing.
func TestHotPathDoesNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		formatted := 0
		regarding, related := testPod(0), testPod(1)
		args := []any{counter{1, &formatted}}
		emit := func() { w.recorder.Eventf(regarding, related, "Normal", "Tested", "Testing", "note %v", args...) }
		emit()
		emit()
		formatted = 0
		assert.Zero(t, testing.AllocsPerRun(1000, emit))
		assert.Zero(t, formatted)
		assert.Equal(t, 1, w.broadcaster.Stats().Tracked)
	})
}
