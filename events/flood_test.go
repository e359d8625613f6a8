package events

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
)

// tally is a sink that only counts, since there is much to count.
type tally struct {
	mu         sync.Mutex
	names      map[string]int // how often each was created
	patches    int
	goroutines int // the most that there were
}

func (s *tally) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[event.Name]++
	s.goroutines = max(s.goroutines, runtime.NumGoroutine())
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
		require.NoError(t, b.Flush(t.Context()))
		assert.Len(t, sink.names, n)
		assert.Zero(t, sink.patches)
		stats := b.Stats()
		assert.EqualValues(t, n, stats.Occurrences)
		assert.EqualValues(t, n, stats.Requests(), "one each")
		assert.Empty(t, stats.Dropped)
		assertBetween(t, 5, 99, sink.goroutines)
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
