package events

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlushWritesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.flush(t) // nothing
		w.emit(0)
		w.emit(1)
		time.Sleep(time.Hour)
		assert.Equal(t, 2, w.broadcaster.Stats().Tracked)
		assert.Equal(t, 2, w.broadcaster.Stats().Waiting)
		require.ErrorContains(t, w.broadcaster.Flush(t.Context()), "cannot flush 2 series: the broadcaster has not been started")
		w.start(t)
		w.flush(t)
		w.flush(t)
		assert.Len(t, w.server.log(), 2, "what is known is not written again")
		assert.Len(t, w.server.list(), 2)
		require.NoError(t, w.broadcaster.Flush(expired()))
		w.assertAccounted(t)
	})
}

func TestFlushEndsWithItsContext(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		w.flush(t)
		w.server.script(always(statusError(500, 0)))
		w.emit(1)
		w.emit(2)
		cause := errors.New("no time left")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		start := time.Now()
		err := w.broadcaster.Flush(ctx)
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "2 of 2 series were not flushed")
		assert.Equal(t, time.Minute, time.Since(start))
		w.server.script(nil)
	})
}

func TestFlushReturnsWhenEventsAreEvicted(t *testing.T) {
	inBubble(t, Options{Capacity: 5}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(500, 0)))
		for i := range 5 {
			w.emit(i)
		}
		synctest.Wait()
		flushed := make(chan error)
		go func() { flushed <- w.broadcaster.Flush(context.Background()) }()
		synctest.Wait()
		start := time.Now()
		for i := range 10 { // half of them make room for the others
			w.emitAs("Warning", 10+i)
		}
		require.NoError(t, <-flushed)
		assert.Zero(t, time.Since(start), "at once, not when its next attempt would have been made")
		assert.Equal(t, map[DropReason]uint64{DropTableFull: 5}, w.broadcaster.Stats().Dropped)
		w.server.script(nil)
	})
}
