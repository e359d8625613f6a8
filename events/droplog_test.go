package events

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first loss of a reason is told of at once. What follows has one line in a
// minute, with all that was lost, also when nothing is lost any more.
func TestDropsAreLoggedOnceInAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		start := time.Now().UTC().Format("2006-01-02T15:04:05")
		for range 150 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
			w.recorder.Eventf(testPod(0), nil, "Strange", "Tested", "Testing", "note")
			time.Sleep(999 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		for reason, words := range map[DropReason]string{
			DropInvalidObject: `"regarding"={"name"=""}`,
			DropInvalidType:   `"regarding"={"name"="pod-0" "namespace"="ns"} "kind"="Pod" "type"="Strange" "eventReason"="Tested" "action"="Testing" "note"="note"`,
		} {
			lines := w.logs.with("Dropped events", string(reason))
			assert.Len(t, lines, 4, "at 0, 60, 120 and 180 s")
			told := 0
			for _, line := range lines {
				assert.Contains(t, line, words)
				var n int
				_, after, _ := strings.Cut(line, `"count"=`)
				_, err := fmt.Sscan(after, &n)
				require.NoError(t, err)
				assertBetween(t, 1, 62, n)
				told += n
			}
			assert.Equal(t, 150, told)
			assert.Contains(t, lines[0], `"since"="`+start)
		}
		assert.Equal(t, map[DropReason]uint64{DropInvalidObject: 150, DropInvalidType: 150}, w.broadcaster.Stats().Dropped)
		w.broadcaster.Shutdown()
		assert.Len(t, w.logs.with("Dropped events"), 8, "all has been told")
	})
}

// What waits for its line when the broadcaster is shut down has it then.
func TestDropsAreLoggedAtShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		for range 10 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		assert.Len(t, w.logs.with("Dropped events", `"count"=1`), 1)
		w.broadcaster.Shutdown()
		assert.Len(t, w.logs.with("Dropped events", `"count"=9`), 1)
	})
}

// Losses that come together have one line, with what the server said.
func TestDropLogAddsUp(t *testing.T) {
	l := newDropLog(time.Minute)
	now := time.Now()
	refused := errors.New("refused")
	losses := l.add(now, refused, []Drop{{Reason: DropRejected, Count: 3, Note: "a"}, {Reason: DropShutdown, Count: 1}, {Reason: DropRejected, Count: 4, Note: "b"}})
	if assert.Len(t, losses, 2) {
		if losses[0].example.Reason != DropRejected {
			losses[0], losses[1] = losses[1], losses[0]
		}
		assert.Equal(t, 7, losses[0].occurrences)
		assert.Equal(t, "b", losses[0].example.Note)
		assert.Equal(t, refused, losses[0].err)
		assert.Equal(t, 1, losses[1].occurrences)
	}
	assert.Empty(t, l.held)
	assert.Empty(t, l.add(now.Add(time.Second), nil, []Drop{{Reason: DropRejected, Count: 1}}))
	assert.Len(t, l.held, 1)
	assert.Empty(t, l.take(now.Add(59*time.Second), false))
	if losses := l.take(now.Add(time.Minute), false); assert.Len(t, losses, 1) {
		assert.Equal(t, now.Add(time.Second), losses[0].since)
		assert.Equal(t, 1, losses[0].occurrences)
		assert.NoError(t, losses[0].err)
	}
	assert.Empty(t, l.take(now.Add(time.Hour), true))
}
