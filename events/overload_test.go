package events

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/workload"
)

// tally is a sink that counts. It stores nothing, so that it bounds the heap of the
// recorder.
type tally struct {
	EventSink
	away atomic.Bool // it answers nothing but errors

	mu       sync.Mutex
	names    map[string]int // how often each was created
	warnings int            // how many of them are Warnings
}

func (s *tally) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if s.away.Load() {
		return nil, statusError(503, 0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[event.Name]++
	if event.Type == "Warning" {
		s.warnings++
	}
	return event, nil
}

// heapNow returns the heap in bytes.
func heapNow() uint64 {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	if metrics.Read(heap); heap[0].Value.Uint64() > 50_000_000 {
		// On a busy machine the garbage collector lags.
		runtime.GC()
		metrics.Read(heap)
	}
	return heap[0].Value.Uint64()
}

// A controller with random reasons cannot exceed the capacity while the server is
// down. Warnings outlive Normals.
func TestRandomReasons(t *testing.T) {
	type flood struct{ capacity, emitted, warnings, perSecond int }
	for _, tt := range workload.Some(
		flood{100, 3600, 36, 1},
		flood{defaultCapacity, 150_000, 1000, 50}, // also bounds the memory
	) {
		runBubble(t, fmt.Sprint(tt.capacity), func(t *testing.T) {
			sink := &tally{names: make(map[string]int)}
			sink.away.Store(true)
			b := newBroadcaster(sink, Options{QPS: -1, Capacity: tt.capacity})
			logs := &logs{}
			require.NoError(t, b.StartRecordingToSinkWithContext(klog.NewContext(t.Context(), logs.logger())))
			defer b.Shutdown()
			recorder := b.NewRecorder(testScheme(), controller)
			var goroutines int
			var heap uint64
			for i := range tt.emitted {
				eventtype := "Normal"
				if i%(tt.emitted/tt.warnings) == 0 {
					eventtype = "Warning"
				}
				recorder.Eventf(testPod(0), nil, eventtype, fmt.Sprint("Reason", i), "Testing", "note")
				if i%2500 == 0 {
					heap = max(heap, heapNow())
					goroutines = max(goroutines, runtime.NumGoroutine())
				}
				if i%tt.perSecond == 0 {
					require.LessOrEqual(t, b.Stats().Tracked, 2*tt.capacity+defaultPlaces, "those in flight do not count")
					time.Sleep(time.Second)
				}
			}
			stats := b.Stats()
			t.Logf("%d series tracked, dropped %v, at most %d goroutines and %d MB of heap", stats.Tracked, stats.Dropped, goroutines, heap/1e6)
			assert.GreaterOrEqual(t, stats.Tracked, tt.capacity)
			assertBetween(t, 5, 99, goroutines)
			assertBetween(t, 1<<20, 150_000_000, int(heap))
			assertBetween(t, 1, 6, len(logs.with("Dropped events")))

			sink.away.Store(false)
			require.NoError(t, b.Flush(t.Context()))
			assert.Equal(t, tt.warnings, sink.warnings)
			dropped := b.Stats().Dropped
			assert.EqualValues(t, tt.emitted, uint64(len(sink.names))+dropped[DropTableFull])
		})
	}
}

// flood emits new Normals at a constant rate, and calls each once a second.
func (w *world) flood(perSecond int, during time.Duration, each func()) {
	for i := range int(during / time.Second) {
		for n := range perSecond {
			w.emit(1_000_000 + i*perSecond + n)
		}
		each()
		time.Sleep(time.Second)
	}
}

func TestNormalsDoNotEvictRunningWarnings(t *testing.T) {
	workload.Large(t)
	const warnings = 20
	type burst struct {
		perSecond int
		during    time.Duration
	}
	for _, b := range workload.Some(burst{100, 12 * time.Minute}, burst{50, time.Hour}) {
		runInBubble(t, fmt.Sprint(b.perSecond), Options{QPS: 5, Capacity: 1000, EventTTL: 10 * time.Minute}, func(t *testing.T, w *world) {
			w.flood(b.perSecond, b.during, func() {
				for i := range warnings {
					w.emitAs("Warning", i)
				}
			})
			ongoing := 0
			for _, event := range w.server.list() {
				if event.Type == "Warning" && stateOf(event) == "Ongoing" {
					ongoing++
				}
			}
			assert.Equal(t, warnings, ongoing)
			assert.Zero(t, requested(w.broadcaster.Stats(), "recreate", "written"))
			w.broadcaster.Shutdown()
			assert.NotEmpty(t, w.dropped())
			for _, drop := range w.dropped() {
				require.Equal(t, "Normal", drop.Key.Type)
			}
		})
	}
}

func TestWaitingIsBoundedByTheTable(t *testing.T) {
	workload.Large(t)
	for _, during := range workload.Some(20*time.Minute, 2*time.Hour) {
		runInBubble(t, fmt.Sprint(during), Options{QPS: 5, Capacity: 1000}, func(t *testing.T, w *world) {
			most := 0
			w.flood(10, during, func() {
				stats := w.broadcaster.Stats()
				require.LessOrEqual(t, stats.Waiting, stats.Tracked+defaultPlaces)
				most = max(most, stats.Waiting)
			})
			assertBetween(t, 1000, 2*1000+defaultPlaces, most)
		})
	}
}

// A Warning runs while more Normals begin than the rate limit lets through.
func TestHeartbeatsGoBeforeNewNormals(t *testing.T) {
	workload.Large(t)
	type flood struct{ during, ttl, finishAfter time.Duration }
	for _, f := range workload.Some(flood{25 * time.Minute, 10 * time.Minute, 0},
		flood{4 * time.Hour, time.Hour, 6 * time.Minute}, flood{4 * time.Hour, time.Hour, time.Hour}) {
		runInBubble(t, fmt.Sprint(f), Options{QPS: 5, EventTTL: f.ttl, FinishAfter: f.finishAfter}, func(t *testing.T, w *world) {
			w.flood(6, f.during, func() { w.emitAs("Warning", 0) })
			created := 0
			for _, r := range w.server.log() {
				if r.Verb == "create" && strings.HasPrefix(r.Name, "pod-0.") {
					created++
				}
			}
			assert.Equal(t, 1, created, "the Event never expired")
		})
	}
}

func TestNamespaceThatFailsHoldsUpNoOther(t *testing.T) {
	workload.Large(t)
	const failing = 12_000
	for reason, code := range map[DropReason]int32{DropDenied: 403, DropUnavailable: 500} {
		runInBubble(t, string(reason), Options{EventTTL: time.Hour}, func(t *testing.T, w *world) {
			w.server.script(failIn(statusError(code, 0), "broken"))
			start := time.Now()
			w.emit(0)
			w.emit(0)
			for i := range failing {
				w.emitIn("broken", "Normal", i)
			}
			for range 5 {
				time.Sleep(time.Minute)
				w.emit(0)
			}
			w.assertWarningIsPrompt(t)

			for range 54 { // less than the TTL
				w.emit(0)
				time.Sleep(time.Minute)
			}
			assert.Empty(t, w.dropped())
			for range 11 {
				w.emit(0)
				time.Sleep(time.Minute)
			}
			// Those that were denied once, at least, are denied again before.
			assertBetween(t, failing*2/3, failing, int(w.broadcaster.Stats().Dropped[reason]))
			var beats []time.Duration
			broken := 0
			for _, r := range w.server.log() {
				switch {
				case r.Namespace == "broken":
					broken++
				case strings.HasPrefix(r.Name, "pod-0.") && r.Time.After(start):
					beats = append(beats, r.Time.Sub(start))
				}
			}
			if assert.Len(t, beats, 2) {
				assertBetween(t, 30*time.Minute, 31*time.Minute, beats[0])
				assertBetween(t, 30*time.Minute, 31*time.Minute, beats[1]-beats[0])
			}
			assert.Less(t, broken, 16_000)
			time.Sleep(time.Hour)
			assert.Equal(t, map[DropReason]uint64{reason: failing}, w.broadcaster.Stats().Dropped)
		})
	}
}

func TestDeniedWarningsDoNotKeepTheTableFull(t *testing.T) {
	inBubble(t, Options{Capacity: 100, EventTTL: time.Hour}, func(t *testing.T, w *world) {
		w.server.script(failIn(statusError(403, 0), "broken"))
		for i := range 120 {
			w.emitIn("broken", "Warning", i)
		}
		time.Sleep(5 * time.Minute)
		w.assertWarningIsPrompt(t)
		time.Sleep(24 * time.Hour)
		w.emit(1)
		w.flush(t)
		assert.Len(t, w.server.list(), 1)
		dropped := 0
		for _, drop := range w.dropped() {
			assert.Equal(t, "broken", drop.Key.Regarding.Namespace)
			dropped += drop.Count
		}
		assert.Equal(t, 120, dropped)
	})
}

func TestWarningBeforeAFloodOfNormals(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		for i := range 2000 {
			w.emit(i)
		}
		time.Sleep(5 * time.Second)
		w.assertWarningIsPrompt(t)
		w.flush(t)
	})
}

// 5,000 heartbeats of 5 ms each are due.
func TestWarningBeforeAFloodOfHeartbeats(t *testing.T) {
	workload.Large(t)
	const n = 5000
	inBubble(t, Options{QPS: -1, workers: 1, HeartbeatInterval: 5 * time.Minute, FinishAfter: 20 * time.Minute}, func(t *testing.T, w *world) {
		for range 2 {
			for i := range n {
				w.emit(i)
			}
		}
		w.flush(t)
		w.server.slow(requestTimeout - time.Second)
		for range 6 { // all heartbeats become due
			for i := range n {
				w.emit(i)
			}
			time.Sleep(time.Minute)
		}
		w.server.slow(5 * time.Millisecond)
		for before := len(w.server.log()); len(w.server.log()) < before+2; time.Sleep(time.Second) {
		}
		require.Greater(t, w.broadcaster.Stats().Waiting, n/2)
		w.assertWarningIsPrompt(t)
		time.Sleep(time.Minute)
		assert.GreaterOrEqual(t, requested(w.broadcaster.Stats(), "heartbeat", "written"), uint64(n*9/10))
		w.server.slow(0)
	})
}

// assertWarningIsPrompt fails the test unless the recorder writes a Warning within a
// second.
func (w *world) assertWarningIsPrompt(t *testing.T) {
	t.Helper()
	emitted := time.Now()
	w.emitAs("Warning", 9999)
	time.Sleep(time.Second)
	requests := w.requestsFor(9999)
	require.NotEmpty(t, requests)
	assert.Less(t, requests[0].Sub(emitted), time.Second)
}
