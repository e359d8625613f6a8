package events

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/klog/v2"
)

// tally is a sink that only counts, since there is much to count.
type tally struct {
	mu         sync.Mutex
	away       bool           // it answers nothing but errors
	names      map[string]int // how often each was created
	warnings   int            // how many of them are Warnings
	patches    int
	goroutines int    // the most that there were
	heap       uint64 // the most that there was of it, in bytes
}

// back ends its absence.
func (s *tally) back() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

// sample looks at the process: seldom, as it takes its time.
func (s *tally) sample() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look()
}

// look is sample with the lock held.
func (s *tally) look() {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	if metrics.Read(heap); heap[0].Value.Uint64() > 50_000_000 {
		// On a busy machine the collector comes late, and this is not about that.
		runtime.GC()
		metrics.Read(heap)
	}
	s.heap = max(s.heap, heap[0].Value.Uint64())
	s.goroutines = max(s.goroutines, runtime.NumGoroutine())
}

func (s *tally) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, statusError(503, 0)
	}
	s.names[event.Name]++
	if event.Type == "Warning" {
		s.warnings++
	}
	if len(s.names)%5000 == 0 {
		s.look()
	}
	return event, nil
}

func (s *tally) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.patches++
	return event, nil
}

func (s *tally) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return nil, errors.New("no updates")
}

func TestFiftyThousandDistinctEvents(t *testing.T) {
	const n = 50_000
	synctest.Test(t, func(t *testing.T) {
		sink := &tally{names: make(map[string]int)}
		b := NewBroadcasterWithOptions(sink, Options{QPS: -1})
		require.NoError(t, b.StartRecordingToSinkWithContext(t.Context()))
		defer b.Shutdown()
		recorder := b.NewRecorder(testScheme(), controller)
		for i := range n {
			recorder.Eventf(testPod(i), nil, "Normal", "Tested", "Testing", "note")
		}
		sink.sample()
		require.NoError(t, b.Flush(t.Context()))
		assert.Len(t, sink.names, n)
		assert.Zero(t, sink.patches)
		stats := b.Stats()
		assert.EqualValues(t, n, stats.Occurrences)
		assert.EqualValues(t, n, stats.Requests(), "one each")
		assert.Empty(t, stats.Dropped)
		assertBetween(t, 5, 99, sink.goroutines)
		assertBetween(t, 1<<20, 150_000_000, int(sink.heap))
		t.Logf("at most %d goroutines and %d MB of heap", sink.goroutines, sink.heap/1e6)
	})
}

// A hundred thousand occurrences on a thousand keys while the server is away.
func TestOutageUnderLoad(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(500, 0)))
		for range 100 {
			for i := range 1000 {
				w.emit(i)
			}
			time.Sleep(time.Second)
		}
		assert.Equal(t, 1000, w.broadcaster.Stats().Tracked)
		w.server.script(nil)
		w.flush(t)
		assert.Len(t, w.server.list(), 1000)
		assert.EqualValues(t, 100_000, w.server.delivered())
	})
}

// A controller that puts random text into its reason cannot use more room than
// there is. Warnings outlive Normals, and what is lost is counted.
func TestRandomReasons(t *testing.T) {
	const room = 100
	inBubble(t, Options{Capacity: room}, func(t *testing.T, w *world) {
		w.server.script(always(statusError(500, 0)))
		for i := range 3600 {
			eventtype := "Normal"
			if i%100 == 0 {
				eventtype = "Warning"
			}
			w.recorder.Eventf(testPod(0), nil, eventtype, fmt.Sprint("Reason", i), "Testing", "note")
			require.LessOrEqual(t, w.broadcaster.Stats().Tracked, 2*room)
			time.Sleep(time.Second)
		}
		assert.LessOrEqual(t, len(w.logs.with("Dropped events")), 2*60, "once in a minute for each reason")
		w.server.script(nil)
		w.flush(t)
		warnings := 0
		for _, event := range w.server.list() {
			if event.Type == "Warning" {
				warnings++
			}
		}
		assert.Equal(t, 36, warnings)
		dropped := w.broadcaster.Stats().Dropped
		assert.Positive(t, dropped[DropTableFull]+dropped[DropDisplaced])
	})
}

// The same for an hour with the room that there is by default, while the server
// is away: the worst that a controller can do to its own memory.
func TestRandomReasonsFillTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const emitted, warnings = 90_000, 900
		sink := &tally{names: make(map[string]int), away: true}
		b := NewBroadcasterWithOptions(sink, Options{QPS: 5})
		logs := &logs{}
		require.NoError(t, b.StartRecordingToSinkWithContext(klog.NewContext(t.Context(), logs.logger())))
		defer b.Shutdown()
		recorder := b.NewRecorder(testScheme(), controller)
		for i := range emitted {
			eventtype := "Normal"
			if i%(emitted/warnings) == 0 {
				eventtype = "Warning"
			}
			recorder.Eventf(testPod(0), nil, eventtype, fmt.Sprint("Reason", i), "Testing", "note")
			if i%250 == 0 {
				sink.sample()
				time.Sleep(10 * time.Second)
			}
		}
		stats := b.Stats()
		t.Logf("%d series tracked, dropped %v, at most %d goroutines and %d MB of heap", stats.Tracked, stats.Dropped, sink.goroutines, sink.heap/1e6)
		assertBetween(t, tracker.DefaultCapacity, 2*tracker.DefaultCapacity, stats.Tracked)
		assertBetween(t, 5, 99, sink.goroutines)
		assertBetween(t, 1<<20, 150_000_000, int(sink.heap))

		assertBetween(t, 2, 2*20, len(logs.with("Dropped events")))

		sink.back()
		require.NoError(t, b.Flush(t.Context()))
		assert.Equal(t, warnings, sink.warnings, "Warnings outlive Normals")
		dropped := b.Stats().Dropped
		assert.EqualValues(t, emitted, uint64(len(sink.names))+dropped[DropTableFull]+dropped[DropDisplaced])
	})
}

// With a server that works, room for few does not mean that anything is lost.
func TestMoreThanThereIsRoomFor(t *testing.T) {
	inBubble(t, Options{Capacity: 10}, func(t *testing.T, w *world) {
		for i := range 1000 {
			w.emit(i)
			w.emit(i)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		w.flush(t)
		assert.EqualValues(t, 2000, w.server.delivered())
		assert.Empty(t, w.broadcaster.Stats().Dropped)
		unknown := 0
		for _, event := range w.server.list() {
			if stateOf(event) == "Unknown" {
				unknown++
			}
		}
		assert.Equal(t, 990, unknown, "those that gave way")
	})
}
