package events

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// Code of the caller that is called back can panic, and can emit events itself.
// Neither may come back to the caller, or stop the recorder.

func TestArgumentThatPanics(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "%v", panicker{})
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "%v", panicker{})
		w.flush(t)
		assert.Contains(t, w.server.only(t).Note, "no string today")
	})
}

// chatty is an argument that emits an event while it is formatted.
type chatty struct{ w *world }

func (c chatty) String() string { c.w.emit(1); return "chatty" }

func TestArgumentThatEmits(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		_, err := w.broadcaster.StartEventWatcher(func(runtime.Object) {})
		require.NoError(t, err)
		for range 3 {
			w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "%v", chatty{w})
		}
		w.flush(t)
		list := w.server.list()
		require.Len(t, list, 2)
		assert.EqualValues(t, 3, countOf(list[0]))
		assert.EqualValues(t, 3, countOf(list[1]))
	})
}

func TestOnDropThatPanics(t *testing.T) {
	calls := 0
	inBubble(t, Options{OnDrop: func(Drop) { calls++; panic("drop that") }}, func(t *testing.T, w *world) {
		for range 100 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		assert.Equal(t, 100, calls)
		assert.Len(t, w.logs.with("Caught a panic", "OnDrop", "drop that", "callers_test.go"), 1, "not one for each")
	})
}

// It may emit what is lost as well: that is counted, but not offered, or there
// would be no end to it.
func TestOnDropThatEmits(t *testing.T) {
	var w *world
	onDrop := func(Drop) {
		w.emit(1)
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
	}
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		w = newWorld(t, Options{})
		w.broadcaster.opts.OnDrop = func(d Drop) { calls++; onDrop(d) }
		w.start(t)
		for range 10 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		w.broadcaster.Shutdown()
		assert.Equal(t, 10, calls)
		assert.Equal(t, map[DropReason]uint64{DropInvalidObject: 20}, w.broadcaster.Stats().Dropped)
		assert.EqualValues(t, 10, countOf(w.server.only(t)))
	})
}

// What others lose at the same time is offered all the same.
func TestOnDropRunsConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		w := newWorld(t, Options{OnDrop: func(Drop) { calls.Add(1); time.Sleep(time.Second) }})
		w.start(t)
		for range 50 {
			go w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 50, calls.Load())
	})
}

func TestOnDropThatShutsDown(t *testing.T) {
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, Options{OnDrop: func(Drop) { w.broadcaster.Shutdown() }})
		w.emit(0)
		start := time.Now()
		w.broadcaster.Shutdown() // loses the event, since it was never started
		assert.LessOrEqual(t, time.Since(start), DefaultShutdownTimeout)
		w.assertAccounted(t)
	})
}

func TestHandlerThatEmits(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		handled := 0
		_, err := w.broadcaster.StartEventWatcher(func(runtime.Object) {
			if handled++; handled < 10 {
				w.emit(1)
			}
		})
		require.NoError(t, err)
		w.emit(0)
		w.flush(t)
		synctest.Wait()
		assert.Equal(t, 10, handled)
	})
}

// badLogger panics, or does something worse, with every line.
type badLogger struct{ do func() }

func (b badLogger) Init(logr.RuntimeInfo)                {}
func (b badLogger) Enabled(int) bool                     { return true }
func (b badLogger) Info(int, string, ...any)             { b.do() }
func (b badLogger) Error(error, string, ...any)          { b.do() }
func (b badLogger) WithValues(...any) klog.LogSink       { return b }
func (b badLogger) WithName(string) klog.LogSink         { return b }
func (b badLogger) WithCallDepth(depth int) klog.LogSink { return b }

func TestLoggerThatPanics(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer error
	}{
		{"works", nil},
		{"refused", statusError(422, 0)},
		{"pushed back", statusError(429, 0)},
		{"troubled", statusError(500, 0)},
		{"denied", statusError(403, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := new(atomic.Int32)
				logger := klog.New(badLogger{func() { lines.Add(1); panic("no log today") }})
				w := newWorld(t, Options{OnDrop: func(Drop) { panic("OnDrop") }})
				require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logger)))
				_, err := w.broadcaster.StartLogging(logger)
				require.NoError(t, err)
				_, err = w.broadcaster.StartEventWatcher(func(runtime.Object) { panic("handler") })
				require.NoError(t, err)
				w.broadcaster.NewRecorder(nil, "two words").WithLogger(logger).Eventf(nil, nil, "", "", "", "")
				w.server.script(once(tt.answer))
				w.emit(0)
				time.Sleep(5 * time.Minute)
				w.emit(1)
				w.flush(t)
				w.broadcaster.Shutdown()
				assert.GreaterOrEqual(t, lines.Load(), int32(4))
				w.assertAccounted(t)
			})
		})
	}
}

func TestStartLoggingWithALoggerThatPanics(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var lines atomic.Int32
		_, err := w.broadcaster.StartLogging(klog.New(badLogger{func() { lines.Add(1); panic("no log today") }}))
		require.NoError(t, err)
		w.emit(0)
		w.emit(0)
		synctest.Wait()
		assert.EqualValues(t, 2, lines.Load())
	})
}

func TestLoggerThatEmits(t *testing.T) {
	var w *world
	synctest.Test(t, func(t *testing.T) {
		lines := new(atomic.Int32)
		logger := klog.New(badLogger{func() {
			lines.Add(1)
			w.emit(1)
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}})
		w = newWorld(t, Options{})
		require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logger)))
		w.server.script(once(statusError(500, 0)))
		w.emit(0)
		w.flush(t)
		w.broadcaster.Shutdown()
		assert.Positive(t, lines.Load())
		w.assertAccounted(t)
	})
}

// A transport may report on itself.
func TestSinkThatEmits(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(func(context.Context, request) error {
			w.emit(1)
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
			return nil
		})
		for i := range 10 {
			w.emit(2 + i)
		}
		time.Sleep(time.Minute)
		assert.Len(t, w.server.list(), 11)
		assert.Less(t, len(w.server.log()), 15, "the series of its own costs two requests")
		w.server.script(nil)
	})
}
