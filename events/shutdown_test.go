package events

import (
	"context"
	"errors"
	"fmt"
	"math"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestStartTwice(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		d := w.broadcaster.dispatcher.Load()
		require.ErrorIs(t, w.broadcaster.StartRecordingToSinkWithContext(t.Context()), ErrStarted)
		w.broadcaster.StartRecordingToSink(nil)
		assert.Len(t, w.logs.with("Cannot record events", "started already"), 1)
		assert.Same(t, d, w.broadcaster.dispatcher.Load())
		w.emit(0)
		w.flush(t)
		assert.EqualValues(t, 1, countOf(w.server.only(t)))
	})
}

func TestNewFails(t *testing.T) {
	_, err := New(newServer(), Options{Capacity: -1, ClusterNamespace: "here"})
	require.ErrorContains(t, err, "Capacity is negative: -1")
	require.ErrorContains(t, err, `ClusterNamespace is "here"`)
	_, err = New(nil, Options{})
	require.ErrorContains(t, err, "no sink")
	b := NewBroadcaster(nil)
	require.ErrorContains(t, b.StartRecordingToSinkWithContext(t.Context()), "no sink")
	b.NewRecorder(testScheme(), controller).Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
	b.Shutdown()
	assert.Equal(t, map[DropReason]uint64{DropShutdown: 1}, b.Stats().Dropped)
}

func TestStartRecordingToSinkEndsWithItsChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		stop := make(chan struct{})
		w.broadcaster.StartRecordingToSink(stop)
		w.emit(0)
		close(stop)
		time.Sleep(defaultShutdownTimeout)
		synctest.Wait()
		assert.EqualValues(t, 1, countOf(w.server.only(t)))
		w.broadcaster.dispatcher.Load().goroutines.Wait()
	})
}

// The garbage collector frees a broadcaster that is never started. A bubble fails if
// a goroutine is left.
func TestNoGoroutineBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBroadcaster(newServer())
		recorder := b.NewRecorder(testScheme(), controller)
		for i := range 100 {
			recorder.Eventf(testPod(i), nil, "Normal", "Tested", "Testing", "note")
		}
		assert.Equal(t, 100, b.Stats().Tracked)
	})
}

// Start runs as long as the manager, even if something else has started the
// broadcaster.
func TestStartUnderAManager(t *testing.T) {
	for name, started := range map[string]bool{"starts it": false, "is started already": true} {
		runBubble(t, name, func(t *testing.T) {
			w := newWorld(t, Options{})
			if started {
				w.start(t)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.broadcaster.Start(ctx) }()
			w.emit(0)
			synctest.Wait()
			assert.Len(t, w.server.list(), 1)
			assert.Empty(t, ended)
			cancel()
			require.NoError(t, <-ended)
			if started {
				time.Sleep(time.Minute) // it runs as long as the context of its start
			}
			w.emit(1)
			synctest.Wait()
			assert.Len(t, w.server.list(), 2)
			w.broadcaster.Shutdown()
			assert.ErrorIs(t, w.broadcaster.Start(t.Context()), ErrShutDown)
		})
	}
}

func TestNeedLeaderElection(t *testing.T) {
	assert.False(t, NewBroadcaster(newServer()).NeedLeaderElection())
	assert.True(t, newBroadcaster(newServer(), Options{Scope: SameController}).NeedLeaderElection())
}

func TestShutdownIgnoresTheRateLimit(t *testing.T) {
	for _, tt := range []struct {
		qps     float32
		takes   time.Duration
		emitted int
		before  time.Duration // Shutdown
		most    int           // requests in that time
	}{
		{0, 2 * time.Millisecond, 5000, 0, 100}, // the rate limiter would permit 600 requests during Shutdown
		{0, time.Second / 2, 450, 0, 100},       // four at a time would write 72 series
		{0.05, 2 * time.Millisecond, 200, time.Minute, 9},
	} {
		runInBubble(t, fmt.Sprint(tt.qps, " ", tt.takes), Options{QPS: tt.qps}, func(t *testing.T, w *world) {
			w.server.slow(tt.takes)
			for i := range tt.emitted {
				w.emit(i)
			}
			time.Sleep(tt.before)
			require.LessOrEqual(t, len(w.server.log()), tt.most)
			start := time.Now()
			w.broadcaster.Shutdown()
			assert.LessOrEqual(t, time.Since(start), defaultShutdownTimeout)
			assert.Len(t, w.server.list(), tt.emitted)
			assert.Len(t, w.server.log(), tt.emitted, "one request each")
			assert.Empty(t, w.broadcaster.Stats().Dropped)
			assert.Zero(t, w.broadcaster.Stats().Tracked)
		})
	}
}

func TestShutdownRetriesSoon(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(500, 0)))
		w.emit(0)
		time.Sleep(50 * time.Minute)
		time.AfterFunc(time.Second, func() { w.server.script(nil) })
		start := time.Now()
		w.broadcaster.Shutdown()
		assertBetween(t, time.Second, hopeless, time.Since(start))
		assert.EqualValues(t, 1, countOf(w.server.only(t)))
	})
}

// A server that fails costs two seconds, and one that does not respond, or a sink that hangs, the timeout. What is left is logged
// and counted, and only what hangs is blamed.
func TestShutdownWithADeadServer(t *testing.T) {
	for name, answer := range map[string]func(context.Context, request) error{
		"refuses":              always(statusError(500, 0)),
		"pushes back":          always(statusError(429, 0)),
		"ends with context":    func(ctx context.Context, _ request) error { <-ctx.Done(); return ctx.Err() },
		"panics":               func(context.Context, request) error { panic("sink on fire") },
		"ends the goroutine":   func(context.Context, request) error { goruntime.Goexit(); return nil },
		"responds after a day": func(context.Context, request) error { time.Sleep(24 * time.Hour); return nil },
	} {
		runInBubble(t, name, Options{ShutdownTimeout: 5 * time.Second}, func(t *testing.T, w *world) {
			w.unaccounted = true
			w.watch(t, func(runtime.Object) {})
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
			hangs := name == "responds after a day"
			assert.Equal(t, hangs, len(w.logs.with("A sink hangs")) == 1)
			if hangs || name == "ends with context" { // it can still respond
				assertBetween(t, 4500*time.Millisecond, 5*time.Second, time.Since(start))
			} else {
				assertBetween(t, hopeless, 2*time.Second, time.Since(start))
			}
			assert.Equal(t, map[DropReason]uint64{DropShutdown: 40}, w.broadcaster.Stats().Dropped)
			assert.Zero(t, w.broadcaster.Stats().Tracked)
			assert.Len(t, w.logs.with("Events were left when the broadcaster was shut down", "20 of 20 series were not flushed"), 1)
			assert.Len(t, w.logs.with("Dropped events", string(DropShutdown), `"count"=40`), 1)
			assert.Len(t, w.dropped(), 20)
			assert.Empty(t, w.logs.with("An event handler hangs"))
			if hangs || name == "ends with context" {
				assert.Empty(t, w.logs.with("Cannot write events"), "nothing will be retried")
			}
			time.Sleep(48 * time.Hour) // requests in flight end
		})
	}
}

// Shutdown logs the losses that are not in the log yet. The first loss after that is logged at
// once, and the others with a later one: no dispatcher runs that could log them.
func TestLossesAfterTheEnd(t *testing.T) {
	logged := func(w *world, reason DropReason) (sum int) {
		for _, line := range w.logs.with("Dropped events", string(reason)) {
			var n int
			_, err := fmt.Sscanf(line[strings.Index(line, `"count"=`)+1:], `count"=%d`, &n)
			require.NoError(t, err)
			sum += n
		}
		return sum
	}
	lose := func(w *world) {
		for range 3 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
	}
	for name, start := range map[string]bool{"started": true, "never started": false} {
		runBubble(t, name, func(t *testing.T) {
			w := newWorld(t, Options{})
			if start {
				w.start(t)
			}
			lose(w)
			w.broadcaster.Shutdown()
			assert.Equal(t, 3, logged(w, DropInvalidObject))
			for range 3 {
				lose(w)
				w.emit(0)
				time.Sleep(time.Second)
			}
			assert.Equal(t, 1, logged(w, DropShutdown))
			time.Sleep(logInterval)
			lose(w)
			w.emit(0)
			assert.EqualValues(t, map[DropReason]uint64{DropShutdown: 4, DropInvalidObject: 15}, w.broadcaster.Stats().Dropped)
			assert.Equal(t, 3, logged(w, DropShutdown))
			assert.Equal(t, 3+9+1, logged(w, DropInvalidObject))
		})
	}
	runBubble(t, "context", func(t *testing.T) {
		w := newWorld(t, Options{})
		cancel := w.startUntilCancelled(t)
		time.Sleep(time.Hour)
		cancel()
		time.Sleep(defaultShutdownTimeout - time.Second)
		lose(w)
		time.Sleep(time.Minute)
		assert.Equal(t, 3, logged(w, DropInvalidObject), "those before the end")
		w.emit(0)
		assert.Equal(t, 1, logged(w, DropShutdown))
	})
}

func TestShutdownTwice(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.slow(time.Second)
		for i := range 10 {
			w.emit(i)
		}
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				w.broadcaster.Shutdown()
				assert.Len(t, w.server.list(), 10, "each call waits for the first one")
			})
		}
		wg.Wait()
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.Zero(t, time.Since(start))
	})
}

// Shutdown drops the events. OnDrop may call Shutdown.
func TestShutdownBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		w = newWorld(t, Options{OnDrop: func(Drop) { w.broadcaster.Shutdown() }})
		w.emit(0)
		w.emit(0)
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.LessOrEqual(t, time.Since(start), defaultShutdownTimeout)
		assert.Equal(t, map[DropReason]uint64{DropShutdown: 2}, w.broadcaster.Stats().Dropped)
		require.ErrorIs(t, w.broadcaster.StartRecordingToSinkWithContext(t.Context()), ErrShutDown)
		w.assertAccounted(t)
	})
}

func TestEmittingDuringAndAfterShutdown(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.slow(10 * time.Millisecond)
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
		assert.LessOrEqual(t, len(w.logs.with("Dropped events")), 2, "the first loss, and the others at the end")
	})
}

// When its context ends, a broadcaster writes what it has, because many processes end soon after
// that. It outlives the context for a while, because emitters end later.
func TestContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		cancel := w.startUntilCancelled(t)
		for range 10 {
			w.emit(0)
			time.Sleep(time.Second)
		}
		require.Less(t, w.server.delivered(), uint64(10))
		cancel()
		synctest.Wait()
		require.EqualValues(t, 10, w.server.delivered())
		w.server.slow(time.Millisecond)
		time.Sleep(defaultShutdownTimeout - time.Second)
		w.emit(0)
		w.emit(1)
		time.Sleep(time.Second / 2)
		assert.Len(t, w.server.list(), 2, "it still writes")
		time.Sleep(time.Second)
		require.EqualValues(t, 12, w.server.delivered(), "the count as well")
		d := w.broadcaster.dispatcher.Load()
		require.Error(t, d.ctx.Err())
		d.goroutines.Wait() // a deadlock if one were left

		require.ErrorIs(t, w.broadcaster.StartRecordingToSinkWithContext(t.Context()), ErrShutDown)
		requests := len(w.server.log())
		w.emit(1)
		assert.Len(t, w.logs.with("Dropped events", string(DropShutdown), `"count"=1`), 1, "the first one is logged")
		w.emit(2)
		synctest.Wait()
		assert.Len(t, w.server.log(), requests, "it does not write")
		assert.Equal(t, map[DropReason]uint64{DropShutdown: 2}, w.broadcaster.Stats().Dropped)
		began := time.Now()
		require.NoError(t, w.broadcaster.ShutdownWithContext(t.Context()), "nothing was left")
		w.broadcaster.Shutdown()
		assert.Zero(t, time.Since(began))
		w.assertAccounted(t)
	})
}

// What the server has not stored when the time of the context has passed is left, as with Shutdown.
func TestContextEndsWhileTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		cancel := w.startUntilCancelled(t)
		w.server.script(always(statusError(500, 0)))
		w.emit(0)
		w.emit(0)
		w.emit(1)
		cancel()
		time.Sleep(defaultShutdownTimeout + 2*hopeless)
		synctest.Wait()
		assert.Equal(t, map[DropReason]uint64{DropShutdown: 3}, w.broadcaster.Stats().Dropped)
		err := w.broadcaster.ShutdownWithContext(t.Context())
		require.ErrorContains(t, err, "2 series were left")
		require.ErrorIs(t, err, errHopeless)
		w.unaccounted = true
	})
}

// Each row is a context of ShutdownWithContext, and what comes of it.
func TestShutdownWithContext(t *testing.T) {
	never := func(ctx context.Context, _ request) error { <-ctx.Done(); return ctx.Err() }
	deaf := func(context.Context, request) error { time.Sleep(5 * time.Second); return nil }
	for name, tt := range map[string]struct {
		answer        func(context.Context, request) error
		deadline, end time.Duration // if zero, none
		within        time.Duration
		want          error // if nil, nothing is left
	}{
		"all is written":         {nil, time.Minute, 0, 0, nil},
		"no deadline":            {nil, 0, 0, 0, nil},
		"the server takes 5 s":   {never, 200 * time.Millisecond, 0, 200 * time.Millisecond, context.DeadlineExceeded},
		"the sink hangs":         {deaf, 200 * time.Millisecond, 0, 200 * time.Millisecond, context.DeadlineExceeded},
		"canceled":               {never, 0, 100 * time.Millisecond, 100 * time.Millisecond, context.Canceled},
		"canceled, and it hangs": {deaf, 0, 100 * time.Millisecond, 100*time.Millisecond + hopeless, context.Canceled},
		"canceled before":        {never, time.Minute, 100 * time.Millisecond, 100 * time.Millisecond, context.Canceled},
		"in the past":            {never, -time.Second, 0, 0, context.DeadlineExceeded},
		"hopeless":               {always(statusError(500, 0)), time.Minute, 0, 2 * hopeless, errHopeless},
	} {
		runBubble(t, name, func(t *testing.T) {
			w := newWorld(t, Options{ShutdownTimeout: time.Hour})
			w.start(t)
			w.server.script(tt.answer)
			for i := range 3 {
				w.emit(i)
				w.emit(i)
			}
			ctx, end := context.WithCancelCause(t.Context())
			defer end(nil)
			if tt.deadline != 0 {
				var cancel func()
				ctx, cancel = context.WithTimeout(ctx, tt.deadline)
				defer cancel()
			}
			if tt.end != 0 {
				time.AfterFunc(tt.end, func() { end(errors.New("second signal")) })
			}
			began := time.Now()
			err := w.broadcaster.ShutdownWithContext(ctx)
			assert.LessOrEqual(t, time.Since(began), tt.within)
			assert.Equal(t, err, w.broadcaster.ShutdownWithContext(t.Context()), "as the first call")
			if tt.want == nil {
				require.NoError(t, err)
				assert.Len(t, w.server.list(), 3)
				return
			}
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, "3 series were left")
			assert.Equal(t, map[DropReason]uint64{DropShutdown: 6}, w.broadcaster.Stats().Dropped)
			synctest.Wait()
			assert.Len(t, w.dropped(), 3)
			time.Sleep(time.Minute) // requests that hang return
		})
	}
	require.ErrorContains(t, func() error {
		b := NewBroadcaster(newServer())
		b.NewRecorder(testScheme(), controller).Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		return b.ShutdownWithContext(t.Context())
	}(), "1 series were left when the broadcaster was shut down: the broadcaster has not been started")
}

// Programs that make managers again and again leave nothing, whether they shut them down or not.
func TestBroadcastersLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var filter Filter
		run := func(n int) uint64 {
			for i := range n {
				b, err := New(newServer(), Options{Filter: filter.Selects, OnDrop: func(Drop) {}})
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				require.NoError(t, b.StartRecordingToSinkWithContext(ctx))
				b.NewRecorder(testScheme(), controller).Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
				if i%2 == 0 {
					b.Shutdown()
				}
				cancel()
				if i%100 == 99 { // the runtime keeps what as many goroutines need at a time
					time.Sleep(defaultShutdownTimeout)
					synctest.Wait()
				}
			}
			goruntime.GC()
			var m goruntime.MemStats
			goruntime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		run(100)
		goroutines := goruntime.NumGoroutine()
		before := run(100)
		after := run(2000)
		assert.Less(t, after, before+1<<17, "as much for 20 times as many")
		assert.LessOrEqual(t, goruntime.NumGoroutine(), goroutines)
	})
}

// Shutdown has time of its own although the context has ended.
func TestShutdownAtTheEndOfTheContextsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		cancel := w.startUntilCancelled(t)
		w.server.slow(time.Second)
		cancel()
		time.Sleep(defaultShutdownTimeout - 500*time.Millisecond)
		for i := range 8 {
			w.emit(i)
		}
		w.broadcaster.Shutdown()
		assert.Len(t, w.server.list(), 8)
		assert.Empty(t, w.broadcaster.Stats().Dropped)
		w.assertAccounted(t)
	})
}

// A shutdown needs its time for writes.
func TestShutdownDoesNotList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		s.script(always(statusError(500, 0)))
		w := startOn(t, s.server, s, Options{listLimit: math.MaxInt})
		w.emit(0)
		synctest.Wait()
		time.AfterFunc(defaultShutdownTimeout/2, func() { s.script(nil) })
		w.broadcaster.Shutdown()
		assert.Equal(t, 1, s.requestsOf("list"))
		w.assertAccounted(t)
	})
}

func TestNewRecorderDuringShutdown(t *testing.T) {
	for _, latency := range []time.Duration{0, time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newLister()
			s.latency = latency
			w := newWorldOn(t, s.server, s, Options{listLimit: math.MaxInt})
			w.start(t)
			w.list()
			time.Sleep(latency)
			w.emit(0)
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * latency / 50)
					w.broadcaster.NewRecorder(testScheme(), strings.Repeat("x", i+1)).Eventf(testPod(i), nil, "Normal", "R", "A", "note")
				})
			}
			w.broadcaster.Shutdown()
			wg.Wait()
			w.broadcaster.NewRecorder(testScheme(), controller)
			assert.Equal(t, 1, s.requestsOf("list"), "Shutdown does not list")
			assert.NotEmpty(t, s.list())
			s.assertNoProblems(t)
		})
	}
}

// A shutdown sends each series once before it sends one again. So those that are denied or fail
// hold up no other, and what was never sent is not dropped because others were denied.
func TestShutdownSendsWhatIsPermitted(t *testing.T) {
	for i, tt := range []struct {
		code        int32
		takes       time.Duration
		early, late []int // a minute lies between; those below good fail
	}{
		{403, 5 * time.Millisecond, pods(0, 1), pods(good, good+100)},
		{403, 5 * time.Millisecond, pods(0, 2), pods(good, good+100)},
		{403, 5 * time.Millisecond, nil, slices.Concat(pods(0, 30), pods(good, good+100))},
		{403, 50 * time.Millisecond, nil, slices.Concat(pods(0, 50), pods(good, good+20), pods(50, 100))},
		{500, 50 * time.Millisecond, nil, slices.Concat(pods(0, 50), pods(good, good+20), pods(50, 100))},
		{500, 20 * time.Millisecond, nil, slices.Concat(pods(good, good+10), pods(0, 90))},
		{500, 100 * time.Millisecond, nil, slices.Concat(pods(good, good+100), pods(0, 100))},
		{500, 300 * time.Millisecond, nil, slices.Concat(pods(good, good+70), pods(0, 30))},
	} {
		for _, eventtype := range []string{"Warning", "Normal"} {
			runInBubble(t, fmt.Sprint(i, " ", eventtype), Options{listLimit: -1}, func(t *testing.T, w *world) {
				w.server.slow(tt.takes)
				w.server.script(bad(tt.code, good))
				for _, pod := range tt.early {
					w.emitAs("Warning", pod)
				}
				if tt.early != nil {
					time.Sleep(time.Minute)
				}
				passes := 0
				for _, pod := range tt.late {
					w.emitAs(eventtype, pod)
					time.Sleep(time.Microsecond) // the earlier ones go first
					passes += min(pod/good, 1)
				}
				w.broadcaster.Shutdown()
				assert.Len(t, w.server.list(), passes)
				if w.unaccounted = tt.code == 500; !w.unaccounted {
					assert.Equal(t, map[DropReason]uint64{DropDenied: uint64(len(tt.early) + len(tt.late) - passes)}, w.broadcaster.Stats().Dropped)
				}
			})
		}
	}
}

// What has not failed yet is written, and what waits for the end of a pause, although the retries of another
// namespace fail all the time.
func TestShutdownBesideANamespaceThatFails(t *testing.T) {
	for name, tt := range map[string]struct {
		takes      time.Duration
		retryAfter int32 // of the first response of each namespace; if zero, it is stored
	}{
		"slow":   {takes: 3 * time.Second},
		"paused": {retryAfter: 3},
	} {
		runInBubble(t, name, Options{}, func(t *testing.T, w *world) {
			w.unaccounted = true
			var paused sync.Map
			w.server.script(func(_ context.Context, r request) error {
				if r.Namespace == "bad" {
					return statusError(500, 0)
				}
				time.Sleep(tt.takes)
				if _, again := paused.LoadOrStore(r.Namespace, true); tt.retryAfter > 0 && !again {
					return statusError(429, tt.retryAfter)
				}
				return nil
			})
			w.emitIn("bad", "Warning", 0)
			time.Sleep(time.Minute)
			for i := range 100 {
				w.emitIn(fmt.Sprint("ns-", i%20), "Warning", i)
			}
			w.broadcaster.Shutdown()
			assert.Len(t, w.server.list(), 100)
			assert.Equal(t, map[DropReason]uint64{DropShutdown: 1}, w.broadcaster.Stats().Dropped)
		})
	}
}

// The requests after a pause have their time.
func TestShutdownAfterAPause(t *testing.T) {
	for _, takes := range []time.Duration{0, 700 * time.Millisecond, 1400 * time.Millisecond} {
		runInBubble(t, takes.String(), Options{}, func(t *testing.T, w *world) {
			isPaused := true
			w.server.script(func(ctx context.Context, _ request) error {
				if isPaused {
					isPaused = false
					return statusError(429, 1)
				}
				time.Sleep(takes)
				return ctx.Err()
			})
			w.emit(0)
			w.broadcaster.Shutdown()
			assert.Len(t, w.server.list(), 1)
		})
	}
}

// A shutdown waits neither for a permission, nor for a server that is gone or does not serve the API,
// nor for one namespace of several. One denial can be a token that expires, or an object of its own.
func TestShutdownIsQuickWithoutHope(t *testing.T) {
	for name, tt := range map[string]struct {
		answer           func(context.Context, request) error
		takes            time.Duration
		pods, namespaces int
		lost             uint64
		reason           DropReason // of these
		within           time.Duration
	}{
		"token":                {once(statusError(401, 0)), 0, 100, 1, 0, "", time.Second},
		"object":               {bad(403, 1), 0, 100, 1, 1, DropDenied, time.Second},
		"no permission":        {always(statusError(403, 0)), 5 * time.Millisecond, 1000, 1000, 1000, DropDenied, 7 * time.Second},
		"20 in each namespace": {always(statusError(403, 0)), 5 * time.Millisecond, 20_000, 1000, 20_000, DropDenied, 7 * time.Second},
		"server gone":          {always(urlError(syscall.ECONNREFUSED)), 0, 100, 10, 100, DropShutdown, 2 * time.Second},
		"no such API":          {always(apierrors.NewGenericServerResponse(404, "post", eventResource, "", "404 page not found", 0, true)), 0, 100, 10, 100, DropShutdown, 2 * time.Second},
		"one namespace of ten": {failIn(statusError(500, 0), "ns-3"), 0, 100, 10, 10, DropShutdown, 2 * time.Second},
		"slow server":          {nil, 100 * time.Millisecond, 100, 10, 0, "", defaultShutdownTimeout},
	} {
		runInBubble(t, name, Options{listLimit: -1}, func(t *testing.T, w *world) {
			w.unaccounted = tt.reason == DropShutdown
			w.server.slow(tt.takes)
			w.server.script(tt.answer)
			want := map[DropReason]uint64{}
			for i := range tt.pods {
				w.emitIn(fmt.Sprint("ns-", i%tt.namespaces), "Warning", i)
			}
			if tt.lost > 0 {
				want[tt.reason] = tt.lost
			}
			begin := time.Now()
			w.broadcaster.Shutdown()
			assert.LessOrEqual(t, time.Since(begin), tt.within)
			assert.Equal(t, want, w.broadcaster.Stats().Dropped)
			assert.Len(t, w.server.list(), tt.pods-int(tt.lost))
		})
	}
}
