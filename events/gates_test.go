package events

import (
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/series"
)

// Delays double, with up to a fifth on top, and never end. A success resets them.
func TestBackOff(t *testing.T) {
	for _, tt := range []struct {
		code         int32
		last, during time.Duration
		requests     int // at least
	}{
		{429, 16 * time.Second, time.Minute, 6},
		{500, retryMax, 6 * time.Hour, 100},
		{403, 5 * time.Minute, 59 * time.Minute, 15},
	} {
		runInBubble(t, fmt.Sprint(tt.code), Options{}, func(t *testing.T, w *world) {
			w.server.script(always(statusError(tt.code, 0)))
			w.emit(0)
			time.Sleep(tt.during)
			requests := w.server.log()
			require.Greater(t, len(requests), tt.requests)
			want, shares := retryFirst, make(map[float64]bool)
			for i := range len(requests) - 1 {
				delay := requests[i+1].Time.Sub(requests[i].Time)
				assertBetween(t, want, want*6/5, delay)
				shares[float64(delay)/float64(want)] = true
				want = min(2*want, tt.last)
			}
			assert.Greater(t, len(shares), 1, "processes that fail together do not return together")
			assert.LessOrEqual(t, len(w.logs.with("Cannot write events")), int(tt.during/time.Minute), "at most one line a minute")
			w.server.script(nil)
			w.flush(t)
			assert.EqualValues(t, 1, countOf(w.server.only(t)))

			w.server.script(once(statusError(tt.code, 0)))
			w.emit(0)
			time.Sleep(2200 * time.Millisecond)
			requests = w.server.log()[len(w.server.log())-2:]
			assertBetween(t, retryFirst, retryFirst*6/5, requests[1].Time.Sub(requests[0].Time))
		})
	}
}

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
		assert.Equal(t, begin.Add(100*time.Second), stats.Namespaces[0].PausedUntil)
		assert.Len(t, w.logs.with("Cannot write events", "server says 429", `"pausedUntil"="`+logTime(begin.Add(100*time.Second))), 1)
		assert.True(t, stats.Running)

		w.flush(t)
		stats = w.broadcaster.Stats()
		assert.Empty(t, stats.Namespaces)
		assert.Len(t, w.server.list(), 95)
	})
}

// The recorder writes everything when the server recovers, and sends few requests
// before.
func TestHalfAnHourOfEachFault(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(context.Context, request) error
		most   int // requests during that time
	}{
		{"429", always(statusError(429, 0)), 250},
		{"429 with Retry-After", always(statusError(429, 10)), 250},
		{"503 with Retry-After", always(statusError(503, 1)), 250},
		{"500", always(statusError(500, 0)), 250},
		{"503", always(statusError(503, 0)), 250},
		{"refused", always(urlError(syscall.ECONNREFUSED)), 250},
		{"reset", always(urlError(syscall.ECONNRESET)), 250},
		{"no response", func(ctx context.Context, _ request) error { <-ctx.Done(); return ctx.Err() }, 250},
		{"panic", func(context.Context, request) error { panic("sink on fire") }, 250},
	} {
		for _, phase := range []time.Duration{3 * time.Second, 30 * time.Minute} {
			runInBubble(t, fmt.Sprint(tt.name, " ", phase), Options{}, func(t *testing.T, w *world) {
				w.server.slow(2 * time.Millisecond)
				w.server.script(tt.answer)
				for i := range 600 {
					w.emit(i % 200)
				}
				time.Sleep(phase)
				assert.LessOrEqual(t, len(w.server.log()), tt.most)
				assert.Empty(t, w.server.list())
				w.server.script(nil)
				time.Sleep(15 * time.Minute)
				assert.Len(t, w.server.list(), 200)
				assert.Empty(t, w.broadcaster.Stats().Dropped)
			})
		}
	}
}

// When requests pass again, everything is written. Nothing is left of requests that did not return.
func TestAllWorkersWriteAfterAFault(t *testing.T) {
	for name, answer := range map[string]func(context.Context, request) error{
		"403": always(statusError(403, 0)), "429": always(statusError(429, 0)), "500": always(statusError(500, 0)),
		"runtime.Goexit": func(context.Context, request) error { goruntime.Goexit(); return nil }, // as a mock that fails its test
	} {
		runInBubble(t, name, Options{QPS: -1}, func(t *testing.T, w *world) {
			w.server.script(answer)
			synctest.Wait()
			atRest := goroutines(t)
			for i := range 40 {
				w.emit(i)
			}
			time.Sleep(10 * time.Minute)
			assert.Empty(t, w.server.list())
			assert.NotEmpty(t, w.logs.with("Cannot write events", name))

			passes, most := counting()
			w.server.script(passes)
			w.flush(t)
			synctest.Wait()
			assert.Len(t, w.server.list(), 40)
			assert.Equal(t, schedule.MaxPlaces, most())
			assert.Equal(t, atRest, goroutines(t))
		})
	}
}

func TestExtremeRequestRates(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		qps float32
		max time.Duration // from the first request to the second one
	}{
		{math.SmallestNonzeroFloat32, series.MaxDuration},
		{1e-30, series.MaxDuration},
		{1e30, 0},
		{math.MaxFloat32, 0},
	} {
		limiter := newLimiter(Options{QPS: tt.qps}.withDefaults())
		assert.Zero(t, limiter.ReserveN(now, 1).DelayFrom(now), tt.qps)
		assert.Equal(t, tt.max, limiter.ReserveN(now, 1).DelayFrom(now).Round(time.Second), tt.qps)
	}
}

func TestRequestRate(t *testing.T) {
	for _, tt := range []struct {
		qps       float32
		workers   int
		wantQPS   float64
		wantBurst int
	}{
		{qps: 0, workers: 0, wantQPS: 50, wantBurst: 100},
		{qps: 10, workers: 1, wantQPS: 10, wantBurst: 20},
		{qps: 0.5, workers: 4, wantQPS: 0.5, wantBurst: 1},
		{qps: -1, workers: 4, wantQPS: 1e9, wantBurst: 400}, // no limit: it takes no time
	} {
		runInBubble(t, fmt.Sprint(tt.qps), Options{QPS: tt.qps, workers: tt.workers}, func(t *testing.T, w *world) {
			const n = 400
			start := time.Now()
			for i := range n {
				w.emit(i)
			}
			w.flush(t)
			requests := w.server.log()
			require.Len(t, requests, n)
			for i, r := range requests {
				assert.LessOrEqual(t, float64(i+1), float64(tt.wantBurst)+tt.wantQPS*r.Time.Sub(start).Seconds()+0.001)
			}
			assert.LessOrEqual(t, time.Since(start).Seconds(), float64(n-tt.wantBurst+8)/tt.wantQPS, "the limit is used")
		})
	}
}

// From Eventf until the dispatcher sleeps again, a new series takes the lock of the tracker a few times.
func TestLocksOfACreate(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.slow(5 * time.Millisecond)
		for i := range 10 {
			before := w.broadcaster.tracker.Locks()
			w.emit(i)
			time.Sleep(time.Second)
			assert.LessOrEqual(t, w.broadcaster.tracker.Locks()-before, uint64(8))
		}
	})
}
