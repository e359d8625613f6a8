package events

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pauses double from 5 seconds to 5 minutes, with up to a fifth on top, and
// each ends with one request.
func TestPauses(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(429, 0)))
		w.emit(0)
		time.Sleep(2 * time.Hour)
		requests := w.server.log()
		require.Greater(t, len(requests), 20)
		want := 5 * time.Second
		for i := range len(requests) - 1 {
			assertBetween(t, want, want*6/5, requests[i+1].at.Sub(requests[i].at))
			want = min(2*want, 5*time.Minute)
		}
		w.server.script(nil)
	})
}

// Processes that were pushed back together do not come back together.
func TestPausesDiffer(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 10 {
		inBubble(t, Options{}, func(t *testing.T, w *world) {
			w.server.script(once(statusError(429, 0)))
			w.emit(0)
			time.Sleep(6 * time.Second)
			requests := w.server.log()
			require.Len(t, requests, 2)
			seen[requests[1].at.Sub(requests[0].at)] = true
		})
	}
	assert.Greater(t, len(seen), 1)
}

func TestRetryAfterWinsWhereItIsLonger(t *testing.T) {
	for _, tt := range []struct {
		code, retryAfter int32
		low, high        time.Duration
	}{
		{429, 60, 60 * time.Second, 60 * time.Second},
		{503, 60, 60 * time.Second, 60 * time.Second},
		{429, 1, 5 * time.Second, 6 * time.Second},
		{503, 1, 5 * time.Second, 6 * time.Second},
		{429, -1, 5 * time.Second, 6 * time.Second},
		// A server that wants to be left alone for ever does not get that.
		{429, 1_000_000_000, time.Hour, time.Hour},
		{503, math.MaxInt32, time.Hour, time.Hour},
	} {
		t.Run(fmt.Sprintf("%d after %ds", tt.code, tt.retryAfter), func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *world) {
				w.server.script(once(statusError(tt.code, tt.retryAfter)))
				w.emit(0)
				time.Sleep(2 * time.Hour)
				requests := w.server.log()
				require.Len(t, requests, 2)
				assertBetween(t, tt.low, tt.high, requests[1].at.Sub(requests[0].at))
			})
		})
	}
}

// During a pause nothing is asked, whatever is emitted; Stats say so.
func TestNoRequestDuringAPause(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.emit(0)
		synctest.Wait()
		w.server.script(once(statusError(429, 100)))
		begin := time.Now()
		w.emit(0)
		synctest.Wait()
		for i := range 90 {
			w.emit(i % 5)
			w.emitAs("Warning", 5+i)
			time.Sleep(time.Second)
		}
		assert.Len(t, w.server.log(), 2)
		stats := w.broadcaster.Stats()
		assert.Equal(t, begin.Add(100*time.Second), stats.PausedUntil)
		assert.Equal(t, 90*time.Second, stats.Paused)
		assert.Positive(t, stats.Queue)
		assert.Len(t, w.logs.with("Cannot write events", "server says 429", "pausedUntil"), 1)

		w.flush(t)
		stats = w.broadcaster.Stats()
		assert.Zero(t, stats.PausedUntil)
		assert.Equal(t, 100*time.Second, stats.Paused)
		assert.Len(t, w.server.list(), 95)
	})
}

// When a pause is over one request goes first. The others follow when it is
// known how that went.
func TestOneProbeAfterAPause(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(once(statusError(429, 0)))
		w.emit(0)
		synctest.Wait()
		for i := range 50 {
			w.emit(1 + i)
		}
		w.server.slow(20 * time.Second)
		time.Sleep(7 * time.Second)
		assert.Len(t, w.server.log(), 2, "the probe is under way")
		time.Sleep(15 * time.Second)
		assert.Len(t, w.server.log(), 2, "still")
		w.server.slow(0)
		w.flush(t)
		assert.Len(t, w.server.list(), 51)
	})
}

// After a success the next pause is a first one.
func TestSuccessResetsThePause(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(429, 0)))
		w.emit(0)
		time.Sleep(10 * time.Minute)
		w.server.script(nil)
		w.flush(t)
		w.server.script(once(statusError(429, 0)))
		before := time.Now()
		w.emit(1)
		w.flush(t)
		assertBetween(t, 5*time.Second, 6*time.Second, time.Since(before))
	})
}

// A probe that does not get through is no leave to go on.
func TestTroubledProbeIsFollowedByAnother(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(once(statusError(429, 0)))
		w.emit(0)
		synctest.Wait()
		for i := range 50 {
			w.emit(1 + i)
		}
		var atOnce, together atomic.Int32
		w.server.script(func(context.Context, request) error {
			if atOnce.Add(1) > 1 {
				together.Add(1)
			}
			defer atOnce.Add(-1)
			time.Sleep(time.Second)
			return io.EOF
		})
		time.Sleep(20 * time.Second)
		assert.Zero(t, together.Load())
		assert.Greater(t, len(w.server.log()), 5)
		w.server.script(nil)
	})
}

// A push-back that arrives when the pause is over, to a request that was sent
// before it began, begins another; Stats must not be confused by it.
func TestLatePushBack(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		others := once(statusError(429, 0))
		w.server.script(func(ctx context.Context, r request) error {
			if !strings.HasPrefix(r.name.Name, "pod-9.") {
				return others(ctx, r)
			}
			time.Sleep(20 * time.Second)
			w.server.script(nil)
			return statusError(429, 0)
		})
		w.emit(9)
		synctest.Wait()
		w.emit(1)
		time.Sleep(10 * time.Second)
		assert.Len(t, w.server.list(), 1, "the pause is over")
		time.Sleep(11 * time.Second)
		n := len(w.server.log())
		w.emit(2)
		time.Sleep(3 * time.Second)
		assert.Len(t, w.server.log(), n, "no request during the second pause")
		w.flush(t)
		stats := w.broadcaster.Stats()
		assert.Zero(t, stats.PausedUntil)
		assertBetween(t, 10*time.Second, 12*time.Second, stats.Paused)
	})
}

// Whatever the server does for half an hour: when it is back, everything gets
// there.
func TestHalfAnHourOfEachFault(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(context.Context, request) error
		most   int // requests during that time
	}{
		{"429", always(statusError(429, 0)), 14},
		{"429 with Retry-After", always(statusError(429, 10)), 14},
		{"503 with Retry-After", always(statusError(503, 1)), 14},
		{"500", always(statusError(500, 0)), 200 * 25},
		{"503", always(statusError(503, 0)), 200 * 25},
		{"refused", always(urlError(syscall.ECONNREFUSED)), 200 * 25},
		{"reset", always(urlError(syscall.ECONNRESET)), 200 * 25},
		{"no answer", func(ctx context.Context, _ request) error { <-ctx.Done(); return ctx.Err() }, 200 * 25},
		{"panic", func(context.Context, request) error { panic("sink on fire") }, 200 * 25},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, phase := range []time.Duration{3 * time.Second, 30 * time.Minute} {
				t.Run(phase.String(), func(t *testing.T) {
					inBubble(t, Options{}, func(t *testing.T, w *world) {
						w.server.latency = 2 * time.Millisecond
						w.server.script(tt.answer)
						for i := range 200 {
							w.emit(i)
						}
						time.Sleep(phase)
						assert.LessOrEqual(t, len(w.server.log()), tt.most)
						assert.Empty(t, w.server.list())
						w.server.script(nil)
						time.Sleep(15 * time.Minute)
						assert.Len(t, w.server.list(), 200)
						assert.Empty(t, w.broadcaster.Stats().Dropped)
					})
				})
			}
		})
	}
}
