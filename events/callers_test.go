package events

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/eventseries/eventseries/internal/safelog"
)

// Callbacks of the user can panic and can emit events. Neither stops the recorder.

func TestArgumentThatPanics(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "%v", panicker{})
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "%v", panicker{})
		w.flush(t)
		assert.Contains(t, w.server.only(t).Note, "no string today")
	})
}

// panicker is an argument that panics.
type panicker struct{}

func (panicker) String() string { panic("no string today") }

// panickingPanic is a value that panics when it is formatted.
type panickingPanic struct{}

func (p panickingPanic) Error() string { panic(p) }

// chatty is an argument that calls do while it is formatted.
type chatty struct{ do func() }

func (c chatty) String() string { c.do(); return "chatty" }

// Callbacks run without a lock of the recorder.
func TestCallbacksThatEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		calls := make(map[string]*atomic.Int32)
		callback := func(name string) func() {
			n := new(atomic.Int32)
			calls[name] = n
			return func() {
				if n.Add(1) <= 10 { // a handler is called for its own events
					w.emit(1)
				}
			}
		}
		// The documentation forbids this one, because the event could be dropped as well.
		onDrop := callback("OnDrop")
		w = newWorld(t, Options{OnDrop: func(d Drop) {
			if d.Reason != DropShutdown {
				onDrop()
			}
			w.broadcaster.Stats()
			_ = w.broadcaster.Flush(expired()) // must not block, whether something waits or not
		}})
		handler, sink, argument := callback("handler"), callback("sink"), chatty{callback("argument")}
		w.watch(t, func(runtime.Object) { handler() })
		failure := once(statusError(500, 0))
		w.server.script(func(ctx context.Context, r request) error {
			sink()
			return failure(ctx, r)
		})
		ctx := klog.NewContext(context.Background(), badLogger(callback("logger")))
		require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(ctx))
		for range 3 {
			w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "%v", argument)
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		assert.Len(t, w.server.list(), 2)
		assert.Less(t, len(w.server.log()), 10, "the series of the callbacks costs two requests")
		for name, n := range calls {
			assert.Positive(t, n.Load(), name)
		}
		w.broadcaster.Shutdown()
		w.assertAccounted(t)
	})
}

// Who emits in OnDrop, which is forbidden, is called for what is lost then, and not within the call.
func TestOnDropThatEmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		calls, depth := 0, 0
		w = newWorld(t, Options{OnDrop: func(Drop) {
			calls++
			depth++
			assert.Equal(t, 1, depth)
			if calls <= 10 {
				w.emit(0)
			}
			depth--
		}})
		w.broadcaster.Shutdown()
		w.emit(0)
		synctest.Wait()
		assert.Equal(t, 11, calls)
		w.assertAccounted(t)
	})
}

func TestOnDropThatPanics(t *testing.T) {
	calls := 0
	inBubble(t, Options{OnDrop: func(Drop) { calls++; panic("drop that") }}, func(t *testing.T, w *world) {
		for range 100 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		synctest.Wait()
		assert.Equal(t, 100, calls)
		assert.Len(t, w.logs.with("Caught a panic", "OnDrop", "drop that", "callers_test.go"), 1, "not one for each")
	})
	inBubble(t, Options{OnDrop: func(Drop) { panic(panickingPanic{}) }}, func(t *testing.T, w *world) {
		w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		synctest.Wait()
		assert.Len(t, w.logs.with("Caught a panic", "OnDrop", "panickingPanic"), 1)
	})
}

// One goroutine calls OnDrop, for which no emitter waits. What waits for it is bounded.
func TestOnDropIsSlow(t *testing.T) {
	calls, running := 0, 0
	onDrop := func(Drop) {
		running++
		assert.Equal(t, 1, running)
		time.Sleep(time.Second)
		calls++
		running--
	}
	const dropQueue = 2 * 65536
	inBubble(t, Options{OnDrop: onDrop, Capacity: 10}, func(t *testing.T, w *world) {
		w.unaccounted = true
		began := time.Now()
		for range 100 {
			go w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		synctest.Wait()
		assert.Zero(t, time.Since(began))
		time.Sleep(100 * time.Second)
		synctest.Wait()
		assert.Equal(t, 100, calls)
		for range dropQueue + 100 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		time.Sleep(2 * dropQueue * time.Second)
		synctest.Wait()
		assertBetween(t, dropQueue+100, dropQueue+101, calls) // one is in the call meanwhile
		assert.EqualValues(t, dropQueue+200, w.broadcaster.Stats().Dropped[DropInvalidObject])
	})
}

func TestOnDropThatEndsItsGoroutine(t *testing.T) {
	inBubble(t, Options{OnDrop: func(Drop) { goruntime.Goexit() }}, func(t *testing.T, w *world) {
		for range 3 {
			w.recorder.Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		}
		synctest.Wait()
		assert.Len(t, w.dropped(), 3)
	})
}

// badLogger calls do for every line.
func badLogger(do func()) klog.Logger {
	return funcr.New(func(string, string) { do() }, funcr.Options{Verbosity: 9})
}

// Loggers that write JSON can write each value.
func TestLogsAreJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		logger := logr.FromSlogHandler(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.Level(-9)}))
		b := NewBroadcaster(newServer())
		require.NoError(t, b.StartRecordingToSinkWithContext(klog.NewContext(t.Context(), logger)))
		b.NewRecorder(testScheme(), controller).Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		b.NewRecorder(testScheme(), controller).Eventf(nil, nil, "Normal", "Tested", "Testing", "note")
		b.Shutdown()
		assert.Contains(t, out.String(), "Stopped recording events")
		assert.NotContains(t, out.String(), "!ERROR")
	})
}

func TestLoggerThatPanics(t *testing.T) {
	for name, answer := range map[string]error{
		"works":       nil,
		"refused":     statusError(422, 0),
		"pushed back": statusError(429, 0),
		"troubled":    statusError(500, 0),
		"denied":      statusError(403, 0),
	} {
		runBubble(t, name, func(t *testing.T) {
			lines := new(atomic.Int32)
			logger := badLogger(func() { lines.Add(1); panic("no log today") })
			w := newWorld(t, Options{OnDrop: func(Drop) { panic("OnDrop") }})
			require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logger)))
			_, err := w.broadcaster.StartLogging(logger)
			require.NoError(t, err)
			_, err = w.broadcaster.StartEventWatcher(func(runtime.Object) { panic("handler") })
			require.NoError(t, err)
			w.broadcaster.NewRecorder(nil, "two words").WithLogger(logger).Eventf(nil, nil, "", "", "", "")
			w.server.script(once(answer))
			w.emit(0)
			time.Sleep(5 * time.Minute)
			w.emit(1)
			w.flush(t)
			w.broadcaster.Shutdown()
			assert.GreaterOrEqual(t, lines.Load(), int32(4))
			w.assertAccounted(t)
		})
	}
}

// hostileText tries to begin a line, to move the cursor, to end its quotation, and to
// change the writing direction.
const hostileText = "x\nE0101 00:00:00.000000       1 forged.go:1] \"Forged\"\r\x1b[2J\u202e\" forged=\"yes\n >"

// hostileStatus is a response of a server.
func hostileStatus(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: hostileText}}
}

// Input of users and responses of servers make one printable line, and cannot forge
// keys.
func TestHostileInputInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := os.Create(filepath.Join(t.TempDir(), "log"))
		require.NoError(t, err)
		defer out.Close()
		logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(out), textlogger.Verbosity(4)))
		s := newLister()
		s.script(failing("list", errors.New(hostileText)))
		b := newBroadcaster(s, Options{listLimit: math.MaxInt, ReportingInstance: hostileText, OnDrop: func(Drop) { panic(hostileText) }})
		guardedLogger := safelog.Guard(logger)
		b.log.Store(&guardedLogger)
		recorder := b.NewRecorder(testScheme(), "two words"+hostileText)
		b.lists.add(identityOf(recorder).Controller)
		ctx := klog.NewContext(t.Context(), logger)
		require.NoError(t, b.StartRecordingToSinkWithContext(ctx))
		synctest.Wait()
		_, err = b.StartLogging(logger)
		require.NoError(t, err)
		_, err = b.StartEventWatcher(func(runtime.Object) { panic(errors.New(hostileText)) })
		require.NoError(t, err)

		answers := []error{
			errors.New(hostileText), statusError(429, 1),
			hostileStatus(403), hostileStatus(422), hostileStatus(500),
		}
		for i, answer := range answers {
			s.script(once(answer))
			pod := testPod(i)
			pod.Name += hostileText
			pod.Labels = map[string]string{hostileText: hostileText}
			for _, eventtype := range []string{"Warning", hostileText} {
				recorder.(Recorder).AnnotatedEventf(pod, testPod(0), map[string]string{hostileText: hostileText, "example.com/a": hostileText},
					eventtype, "Reason"+hostileText, "Action"+hostileText, "%s", hostileText)
			}
			recorder.Eventf(nil, nil, "Normal", "R", "A", hostileText)
			recorder.Eventf(pod, &runtime.Unknown{TypeMeta: runtime.TypeMeta{Kind: hostileText}}, "Normal", "R", "A", hostileText)
			badNamespace := testPod(0)
			badNamespace.Namespace = "../" + hostileText
			recorder.Eventf(badNamespace, nil, "Normal", "R", "A", hostileText)
			time.Sleep(3 * time.Minute)
		}
		s.script(func(ctx context.Context, _ request) error { <-ctx.Done(); return errors.New(hostileText) })
		recorder.Eventf(testPod(99), nil, "Normal", "R", "A", hostileText)
		b.Shutdown()

		log, err := os.ReadFile(out.Name())
		require.NoError(t, err)
		line := regexp.MustCompile(`^[IE]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [a-z_]+\.go:\d+\] "([^"]+)"`)
		inStack := false
		seen := make(map[string]int)
		for _, l := range strings.Split(strings.TrimSuffix(string(log), "\n"), "\n") {
			// The stack of a panic has several lines.
			if inStack {
				inStack = l != " >"
				assert.NotContains(t, l, "forged")
				continue
			}
			inStack = strings.HasSuffix(l, " stack=<")
			if match := line.FindStringSubmatch(l); assert.NotNil(t, match, "%q", l) {
				seen[match[1]]++
			}
			for _, r := range l {
				if !strconv.IsPrint(r) {
					t.Errorf("%q in %q", r, l)
				}
			}
			assert.NotContains(t, l, ` forged="yes`)
		}
		t.Log(seen)
		for _, message := range []string{
			"Event occurred", "Dropped events", "Caught a panic", "Cannot write events, will try again", "Events are written again",
			"Cannot list events, will try again",
			"Repaired a name that the API server would reject", "Recorded an incomplete event",
			"Sent an event", "Events were left when the broadcaster was shut down",
		} {
			assert.Positive(t, seen[message], message)
		}
	})
}
