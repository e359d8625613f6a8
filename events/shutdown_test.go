package events

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

func TestShutdownDuringALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		w.server.latency = 2 * time.Millisecond
		for i := range 500 {
			w.emit(i)
		}
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.LessOrEqual(t, time.Since(start), DefaultShutdownTimeout)
		assert.Len(t, w.server.list(), 500)
		assert.Empty(t, w.broadcaster.Stats().Dropped)
		assert.Zero(t, w.broadcaster.Stats().Tracked)
		w.assertAccounted(t)
	})
}

// The rate limiter would let 600 through in the time that there is.
func TestShutdownIsNotHeldToTheRateLimit(t *testing.T) {
	const emitted = 5000
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		w.server.latency = 2 * time.Millisecond
		for i := range emitted {
			w.emit(i)
		}
		w.broadcaster.Shutdown()
		assert.Len(t, w.server.list(), emitted)
		w.assertAccounted(t)
	})
}

// A running series stays Ongoing: the next process may go on with it.
func TestShutdownWritesCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		for range 1000 {
			w.emit(0)
			time.Sleep(time.Second)
		}
		w.broadcaster.Shutdown()
		event := w.server.only(t)
		assert.EqualValues(t, 1000, countOf(event))
		assert.Equal(t, series.Ongoing.String(), stateOf(event))
		w.assertAccounted(t)
	})
}

// What waits for its next attempt is tried again, and soon.
func TestShutdownTriesAgain(t *testing.T) {
	for _, code := range []int32{500, 403} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Options{})
			w.start(t)
			w.server.script(always(statusError(code, 0)))
			w.emit(0)
			time.Sleep(time.Hour)
			time.AfterFunc(3*time.Second, func() { w.server.script(nil) })
			start := time.Now()
			w.broadcaster.Shutdown()
			assertBetween(t, 3*time.Second, 5*time.Second, time.Since(start))
			assert.EqualValues(t, 1, countOf(w.server.only(t)))
			w.assertAccounted(t)
		})
	}
}

// A server that is gone costs the timeout, and what is left is said and counted.
func TestShutdownWithADeadServer(t *testing.T) {
	for name, answer := range map[string]func(context.Context, request) error{
		"refuses":             always(statusError(500, 0)),
		"pushes back":         always(statusError(429, 0)),
		"does not answer":     func(ctx context.Context, _ request) error { <-ctx.Done(); return ctx.Err() },
		"panics":              func(context.Context, request) error { panic("sink on fire") },
		"answers after a day": func(context.Context, request) error { time.Sleep(24 * time.Hour); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{ShutdownTimeout: 5 * time.Second})
				w.start(t)
				w.emit(0)
				w.flush(t)
				w.server.script(answer)
				for i := range 20 {
					w.emit(i)
					w.emit(i)
				}
				synctest.Wait()
				start := time.Now()
				w.broadcaster.Shutdown()
				assertBetween(t, 4500*time.Millisecond, 5*time.Second, time.Since(start))
				assert.Equal(t, map[DropReason]uint64{DropShutdown: 40}, w.broadcaster.Stats().Dropped)
				assert.Zero(t, w.broadcaster.Stats().Tracked)
				assert.Len(t, w.logs.with("Events were left when the broadcaster was shut down", "20 of 20 series were not flushed"), 1)
				assert.Len(t, w.logs.with("Dropped events", string(DropShutdown)), 1)
				assert.Len(t, w.dropped(), 20)
				assert.Empty(t, w.logs.with("An event handler does not return"))
				if name == "does not answer" {
					assert.Empty(t, w.logs.with("Cannot write events"), "that it was cut off is no news")
				}
				time.Sleep(48 * time.Hour) // whatever was under way ends at last
			})
		})
	}
}

// A sink that does not even return when its request is cut off takes no more than
// the timeout either, and handlers that are fine are not blamed for it.
func TestShutdownWithASinkThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		var s seen
		w.watch(t, s.handle)
		forever := make(chan struct{})
		w.server.script(func(context.Context, request) error { <-forever; return nil })
		w.emit(0)
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.Equal(t, DefaultShutdownTimeout, time.Since(start))
		assert.Len(t, w.logs.with("A sink does not return"), 1)
		assert.Empty(t, w.logs.with("An event handler does not return"))
		assert.Empty(t, w.logs.with("Cannot write events"), "nothing will be tried again")
		assert.Equal(t, map[DropReason]uint64{DropShutdown: 1}, w.broadcaster.Stats().Dropped)
		close(forever)
		synctest.Wait()
	})
}

func TestShutdownTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		w.server.latency = time.Second
		for i := range 10 {
			w.emit(i)
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				w.broadcaster.Shutdown()
				assert.Len(t, w.server.list(), 10, "each call returns when it is done")
			})
		}
		wg.Wait()
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.Zero(t, time.Since(start))
		w.assertAccounted(t)
	})
}

func TestShutdownBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.emit(0)
		w.emit(0)
		w.broadcaster.Shutdown()
		assert.Equal(t, map[DropReason]uint64{DropShutdown: 2}, w.broadcaster.Stats().Dropped)
		require.ErrorIs(t, w.broadcaster.StartRecordingToSinkWithContext(t.Context()), ErrShutDown)
		w.assertAccounted(t)
	})
}

func TestEmittingDuringAndAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.start(t)
		w.server.latency = 10 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for pod := range 10 {
			wg.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					w.emit(pod + 10*(i%3))
					w.emitAs("Warning", 100+pod)
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		w.broadcaster.Shutdown()
		requests := len(w.server.log())
		time.Sleep(time.Second)
		cancel()
		wg.Wait()
		w.emit(0)
		synctest.Wait()
		assert.Len(t, w.server.log(), requests, "nothing is written afterwards")
		assert.Positive(t, w.broadcaster.Stats().Dropped[DropShutdown])
		assert.LessOrEqual(t, len(w.logs.with("Dropped events")), 2, "at the first, and what else there was at the end")
		w.assertAccounted(t)
	})
}

// When its context ends the broadcaster goes on for a while, since those who emit
// end later, and stops by itself.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		w.startUntil(ctx, t)
		w.emit(0)
		cancel()
		time.Sleep(DefaultShutdownTimeout - time.Second)
		w.emit(1)
		synctest.Wait()
		assert.Len(t, w.server.list(), 2, "it is still writing")
		time.Sleep(time.Second)
		synctest.Wait()
		writer := w.broadcaster.writer.Load()
		require.Error(t, writer.ctx.Err())
		writer.goroutines.Wait() // which would be a deadlock if one were left

		w.emit(1)
		w.emit(2)
		synctest.Wait()
		assert.Len(t, w.server.log(), 2, "it is not writing any more")
		assert.Equal(t, 3, w.broadcaster.Stats().Tracked, "but taking in")

		w.broadcaster.Shutdown()
		assert.EqualValues(t, 4, w.server.delivered(), "Shutdown makes up for it")
		assert.Empty(t, w.broadcaster.Stats().Dropped)
		w.assertAccounted(t)
	})
}

// A Shutdown that comes when the time after the end of the context is almost over
// has its own time.
func TestShutdownAtTheEndOfTheContextsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		w.startUntil(ctx, t)
		w.server.latency = time.Second
		cancel()
		time.Sleep(DefaultShutdownTimeout - 500*time.Millisecond)
		for i := range 8 {
			w.emit(i)
		}
		w.broadcaster.Shutdown()
		assert.Len(t, w.server.list(), 8)
		assert.Empty(t, w.broadcaster.Stats().Dropped)
		w.assertAccounted(t)
	})
}

// Requests that were cut off when the writing stopped must have returned before
// the same series are written again.
func TestShutdownWaitsForRequestsThatWereCutOff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		linger time.Duration // how long the sink takes to notice
		want   map[DropReason]uint64
	}{
		{"a moment", 2 * time.Second, map[DropReason]uint64{}},
		{"too long", time.Hour, map[DropReason]uint64{DropShutdown: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				ctx, cancel := context.WithCancel(t.Context())
				w.startUntil(ctx, t)
				w.server.script(func(ctx context.Context, _ request) error {
					<-ctx.Done()
					time.Sleep(tt.linger)
					return ctx.Err()
				})
				cancel()
				w.emit(0)
				time.Sleep(DefaultShutdownTimeout)
				synctest.Wait()
				w.server.script(nil)
				start := time.Now()
				w.broadcaster.Shutdown()
				assert.LessOrEqual(t, time.Since(start), DefaultShutdownTimeout)
				assert.Equal(t, tt.want, w.broadcaster.Stats().Dropped)
				time.Sleep(2 * time.Hour)
				w.assertAccounted(t)
			})
		})
	}
}
