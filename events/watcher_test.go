package events

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// seen is a handler that keeps its events.
type seen struct {
	mu     sync.Mutex
	events []*eventsv1.Event
}

func (s *seen) handle(object runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, object.(*eventsv1.Event))
}

func (s *seen) all() []*eventsv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*eventsv1.Event(nil), s.events...)
}

// watch starts a watcher.
func (w *world) watch(t *testing.T, handle func(runtime.Object)) (stop func()) {
	t.Helper()
	stop, err := w.broadcaster.StartEventWatcher(handle)
	require.NoError(t, err)
	return stop
}

func TestWatcherGetsEveryOccurrence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		var one, two seen
		w.emit(0)
		w.watch(t, one.handle)
		w.watch(t, two.handle)
		for i := range 100 {
			w.recorder.Eventf(testPod(0), testPod(1), "Warning", "Tested", "Testing", "note %d", i)
			time.Sleep(time.Second)
		}
		events := one.all()
		require.Len(t, events, 100, "not the one from before")
		assert.Equal(t, "note 99", events[99].Note)
		assert.Equal(t, "Warning", events[99].Type)
		assert.Equal(t, "pod-0", events[99].Regarding.Name)
		assert.Equal(t, "pod-1", events[99].Related.Name)
		assert.Equal(t, controller, events[99].ReportingController)
		assert.NotEmpty(t, events[99].Name)
		assert.Equal(t, 99*time.Second, events[99].EventTime.Sub(events[0].EventTime.Time))
		require.Len(t, two.all(), 100)

		events[0].Note = "scribbled"
		assert.Equal(t, "note 0", two.all()[0].Note)
	})
}

func TestWatcherSeesWhatIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Capacity: 1})
		var s seen
		w.watch(t, s.handle)
		w.emit(0)
		w.emit(1)
		w.emit(2)
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		synctest.Wait()
		assert.Len(t, s.all(), 3)
		assert.Equal(t, map[DropReason]uint64{DropTableFull: 1, DropInvalidObject: 1}, w.broadcaster.Stats().Dropped)
	})
}

func TestSlowWatcherHoldsUpNobody(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var slow, quick seen
		w.watch(t, func(o runtime.Object) { time.Sleep(100 * time.Millisecond); slow.handle(o) })
		w.watch(t, quick.handle)
		start := time.Now()
		for i := range 1050 {
			w.emit(i)
			synctest.Wait() // for the quick one
		}
		assert.Zero(t, time.Since(start), "Eventf does not wait")
		assert.Len(t, quick.all(), 1050)
		w.flush(t)
		assert.Len(t, w.server.list(), 1050)
		time.Sleep(200 * time.Second)
		assert.Len(t, slow.all(), watcherQueue+1, "one in hand and the others in the queue")
		assert.EqualValues(t, 49, w.broadcaster.Stats().WatcherDropped)
	})
}

func TestWatcherThatPanics(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var s seen
		calls := 0
		w.watch(t, func(runtime.Object) { calls++; panic("cannot handle that") })
		w.watch(t, s.handle)
		for range 100 {
			w.emit(0)
		}
		synctest.Wait()
		assert.Equal(t, 100, calls, "it goes on")
		assert.Len(t, s.all(), 100)
		assert.Len(t, w.logs.with("Caught a panic", "event handler", "cannot handle that", "watcher_test.go"), 1, "not one for each")
	})
}

func TestWatcherIsStopped(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var s, other seen
		stop := w.watch(t, func(o runtime.Object) { time.Sleep(time.Second); s.handle(o) })
		w.watch(t, other.handle)
		w.emit(0)
		w.emit(0)
		stop()
		stop()
		w.emit(0)
		time.Sleep(5 * time.Second)
		assert.Len(t, s.all(), 2, "what was emitted before is still handed over")
		assert.Len(t, other.all(), 3)
		stop()
	})
}

func TestWatcherStopsItself(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var stop func()
		calls := 0
		stop = w.watch(t, func(runtime.Object) { calls++; stop() })
		w.emit(0)
		synctest.Wait()
		w.emit(0)
		synctest.Wait()
		assert.Equal(t, 1, calls)
		assert.Zero(t, w.broadcaster.watchers.count.Load(), "no Event is made for nobody")
	})
}

func TestWatcherOfNothing(t *testing.T) {
	w := newWorld(t, Options{})
	_, err := w.broadcaster.StartEventWatcher(nil)
	assert.ErrorContains(t, err, "handler is nil")
}

func TestWatcherAndShutdown(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var s seen
		stop := w.watch(t, func(o runtime.Object) { time.Sleep(time.Second); s.handle(o) })
		w.emit(0)
		w.emit(1)
		w.broadcaster.Shutdown()
		assert.Len(t, s.all(), 2, "Shutdown waits for the handlers")
		stop()

		_, err := w.broadcaster.StartEventWatcher(s.handle)
		require.ErrorIs(t, err, ErrShutDown)
		_, err = w.broadcaster.StartLogging(w.logs.logger())
		require.ErrorIs(t, err, ErrShutDown)
		w.broadcaster.StartStructuredLogging(0)()
		assert.Len(t, w.logs.with("Cannot log events", ErrShutDown.Error()), 1)
		w.emit(2)
		synctest.Wait()
		assert.Len(t, s.all(), 2)
	})
}

func TestHangingWatcher(t *testing.T) {
	inBubble(t, Options{ShutdownTimeout: 5 * time.Second}, func(t *testing.T, w *world) {
		forever := make(chan struct{})
		w.watch(t, func(runtime.Object) { <-forever })
		w.emit(0)
		start := time.Now()
		w.broadcaster.Shutdown()
		assert.Equal(t, 5*time.Second, time.Since(start))
		assert.Len(t, w.logs.with("An event handler hangs"), 1)
		close(forever)
	})
}

func TestWatcherThatShutsDown(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.watch(t, func(runtime.Object) { w.broadcaster.Shutdown() })
		w.emit(0)
		time.Sleep(defaultShutdownTimeout)
		synctest.Wait()
	})
}

func TestWatchersConcurrently(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for i := range 200 {
					w.emit(i % 3)
				}
			})
			wg.Go(func() {
				for range 1050 {
					stop, err := w.broadcaster.StartEventWatcher(func(runtime.Object) {})
					assert.NoError(t, err)
					stop()
				}
			})
		}
		wg.Wait()
		w.flush(t)
		assert.Len(t, w.server.list(), 3)
		assert.EqualValues(t, 800, w.server.delivered())
	})
}

func TestStartLogging(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 3})
	klog.SetLogger(logger)
	defer klog.ClearLogger()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		_, err := w.broadcaster.StartLogging(logger.V(4))
		require.NoError(t, err)
		stop := w.broadcaster.StartStructuredLogging(0)
		w.emit(0)
		synctest.Wait()
		require.Len(t, lines, 1, "the other one is too verbose")
		assert.Contains(t, lines[0], `"msg"="Event occurred"`)
		stop()
		w.emit(0)
		synctest.Wait()
		assert.Len(t, lines, 1)
	})
}
