package events

import (
	"context"
	"errors"
	"sync"
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
		require.ErrorContains(t, w.broadcaster.Flush(t.Context()), "cannot flush 2 series: the broadcaster has not been started")
		w.start(t)
		w.flush(t)
		w.flush(t)
		assert.Len(t, w.server.log(), 2, "what is known is not written again")
		assert.Len(t, w.server.list(), 2)
		require.NoError(t, w.broadcaster.Flush(expired()))
	})
}

func TestFlushWritesCounts(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.latency = 2 * time.Millisecond
		for i := range 30 {
			for pod := range 10 {
				w.emit(pod)
			}
			if i%10 == 9 {
				w.flush(t)
				list := w.server.list()
				require.Len(t, list, 10)
				for _, event := range list {
					assert.EqualValues(t, i+1, countOf(event))
				}
			}
		}
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

// Flush does not wait for events that are emitted after the call.
func TestFlushOfAHotLoop(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.latency = 50 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for pod := range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					w.emit(pod)
					time.Sleep(100 * time.Microsecond)
				}
			})
		}
		time.Sleep(time.Second)
		for range 10 {
			before := w.broadcaster.Stats().Occurrences
			start := time.Now()
			w.flush(t)
			assert.Less(t, time.Since(start), time.Second)
			assert.GreaterOrEqual(t, w.server.delivered(), before)
		}
		cancel()
		wg.Wait()
		w.flush(t)
		assert.EqualValues(t, w.broadcaster.Stats().Occurrences, w.server.delivered())
	})
}

func TestFlushReturnsWhenEventsAreDropped(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.latency = time.Second
		w.server.script(always(statusError(422, 0)))
		for i := range 10 {
			w.emit(i)
			w.emit(i)
		}
		w.flush(t)
		assert.Equal(t, map[DropReason]uint64{DropRejected: 20}, w.broadcaster.Stats().Dropped)
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
		for i := range 5 {
			w.emitAs("Warning", 10+i)
		}
		require.NoError(t, <-flushed)
		assert.Zero(t, time.Since(start), "at once, not when its next attempt would have been made")
		assert.Equal(t, map[DropReason]uint64{DropDisplaced: 5}, w.broadcaster.Stats().Dropped)
		w.server.script(nil)
	})
}

func TestFlushAfterTheWritingHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		w.startUntil(ctx, t)
		cancel()
		time.Sleep(defaultShutdownTimeout)
		synctest.Wait()
		w.emit(0)
		require.ErrorContains(t, w.broadcaster.Flush(t.Context()), "1 of 1 series were not flushed: the broadcaster has stopped")
		w.broadcaster.Shutdown()
		w.assertAccounted(t)
		require.NoError(t, w.broadcaster.Flush(t.Context()), "nothing is left")
	})
}

func TestFlushConcurrently(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.latency = 3 * time.Millisecond
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 20 {
					w.emit(g*3 + i%5)
					assert.NoError(t, w.broadcaster.Flush(t.Context()))
				}
			})
		}
		wg.Wait()
		assert.EqualValues(t, 160, w.server.delivered())
	})
}
