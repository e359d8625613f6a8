package events

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/schedule"
)

// hanging makes the first n requests hang until release, or all if n is negative.
func hanging(n int) (answer func(context.Context, request) error, release func()) {
	var calls atomic.Int32
	wait := make(chan struct{})
	answer = func(context.Context, request) error {
		if n < 0 || int(calls.Add(1)) <= n {
			<-wait
		}
		return nil
	}
	return answer, sync.OnceFunc(func() { close(wait) })
}

// defaultPlaces is the number of requests in flight with default options.
var defaultPlaces = Options{}.withDefaults().workers

func TestHangingCallsHoldUpTheirNamespaceAlone(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		answer, release := hanging(defaultPlaces)
		defer release()
		w.server.script(answer)
		for i := range 20 {
			w.emitIn("hangs", "Normal", i)
		}
		time.Sleep(time.Second)
		for i := range 20 {
			w.emitIn("works", "Normal", i)
		}
		time.Sleep(time.Second)
		assert.Len(t, w.server.list(), 20)
		time.Sleep(time.Hour)
		release()
		w.flush(t)
		assert.Len(t, w.server.list(), 40)
		assert.Empty(t, w.broadcaster.Stats().Namespaces)
	})
}

func TestHangingList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		forever := make(chan struct{})
		s.script(func(_ context.Context, r request) error {
			if r.Verb != "list" {
				return nil
			}
			if s.requestsOf("list") == 1 {
				return statusError(429, 5)
			}
			<-forever
			return nil
		})
		w := startOn(t, s.server, s, Options{})
		w.list()
		time.Sleep(2 * pauseFirst)
		for i := range 20 {
			w.emit(i)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		assert.Len(t, s.list(), 20)
		close(forever)
		w.broadcaster.Shutdown()
		s.assertNoProblems(t)
	})
}

// The number of calls is bounded in each namespace. Afterwards, their goroutines have ended.
func TestEveryCallHangs(t *testing.T) {
	for _, namespaces := range []int{1, 50} {
		runInBubble(t, fmt.Sprint(namespaces), Options{}, func(t *testing.T, w *world) {
			answer, release := hanging(-1)
			defer release()
			w.server.script(answer)
			synctest.Wait()
			atRest := goroutines(t)
			for i := range 20 * namespaces {
				w.emitIn(fmt.Sprint("ns-", i%namespaces), "Normal", i)
			}
			time.Sleep(24 * time.Hour)
			calls := len(w.server.log())
			assertBetween(t, namespaces, namespaces*defaultPlaces, calls)
			assert.Equal(t, atRest+calls, goroutines(t))

			w.server.script(nil)
			release()
			w.flush(t)
			synctest.Wait()
			assert.Len(t, w.server.list(), 20*namespaces)
			assert.Equal(t, atRest, goroutines(t))
		})
	}
}

// counting takes 50 ms for each request. most returns how many were in flight at the same time.
func counting() (answer func(context.Context, request) error, most func() int) {
	var mu sync.Mutex
	now, peak := 0, 0
	add := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		peak = max(peak, now)
	}
	answer = func(context.Context, request) error {
		add(1)
		defer add(-1)
		time.Sleep(schedule.SlowAfter / 2)
		return nil
	}
	return answer, func() int { mu.Lock(); defer mu.Unlock(); return peak }
}

// goroutines counts those in the bubble of the caller.
func goroutines(t *testing.T) int {
	t.Helper()
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	bubble := regexp.MustCompile(`, synctest bubble \d+\]:\n`)
	own := bubble.Find(stacks) // the caller's is the first
	require.NotNil(t, own, "%.100s", stacks)
	return bytes.Count(stacks, own)
}

func TestShutdownWithHangingCalls(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.unaccounted = true
		answer, release := hanging(defaultPlaces)
		w.server.script(answer)
		for i := range 20 {
			w.emit(i)
		}
		time.Sleep(2 * time.Minute)
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.LessOrEqual(t, time.Since(start), defaultShutdownTimeout)
		assert.Equal(t, map[DropReason]uint64{DropShutdown: uint64(defaultPlaces)}, w.broadcaster.Stats().Dropped)
		release()
		synctest.Wait()
		assert.EqualValues(t, 20, w.server.delivered(), "what was said to be lost got there after all")
	})
}
