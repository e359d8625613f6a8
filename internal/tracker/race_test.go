package tracker

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// hammer is a tracker that many goroutines use, and a server.
type hammer struct {
	tracker *Tracker
	clock   atomic.Int64 // everybody moves it, so series end

	mu      sync.Mutex
	remote  *server
	dropped int
}

func (h *hammer) now() time.Time {
	return start.Add(time.Duration(h.clock.Add(int64(time.Millisecond))))
}

func (h *hammer) lose(drops []Drop) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range drops {
		h.dropped += d.Count
	}
}

func (h *hammer) emit(k *series.Key) {
	now := h.now()
	e, counted, wantNote := h.tracker.Count(k, h.tracker.offset(now))
	switch {
	case !counted:
		h.lose(h.tracker.Observe(k, Occurrence{Note: "note"}, now))
	case wantNote:
		h.tracker.Describe(e, Occurrence{Note: "later", Annotations: map[string]string{"a": "1"}}, now)
	}
}

// work makes one request, and reports whether there was one. The server accepts all requests if rng is
// nil.
func (h *hammer) work(rng *rand.Rand) bool {
	w, drops, ok := next(h.tracker, h.now())
	h.lose(drops)
	if !ok {
		return false
	}
	outcome := 99
	if rng != nil {
		outcome = rng.IntN(100)
	}
	var r Response
	switch {
	case outcome == 0:
		r.Outcome = schedule.PushedBack
		h.clock.Add(int64(5 * time.Second)) // or the pause would fill the rest of the test
	case outcome == 1:
		r.Outcome = schedule.Troubled
		h.clock.Add(int64(time.Second))
	case outcome < 4:
		r.Outcome = schedule.Refused
		h.clock.Add(int64(time.Minute))
	default:
		h.mu.Lock()
		f := &flight{Write: w, key: "a"}
		if ev := h.remote.events[w.Series.Name]; ev != nil {
			f.key, f.ids = ev.key, ev.ids // this test has books of its own
		}
		r, _ = h.remote.do(f)
		h.mu.Unlock()
	}
	h.lose(h.tracker.Apply(w, r, h.now()))
	return true
}

// restore restores an Event as it was a moment ago.
func (h *hammer) restore(rng *rand.Rand) {
	h.mu.Lock()
	all := h.remote.all("")
	if len(all) == 0 {
		h.mu.Unlock()
		return
	}
	found, err := series.FromEvent(all[rng.IntN(len(all))].event)
	h.mu.Unlock()
	if err != nil {
		panic(err)
	}
	runtime.Gosched()
	_, drops := h.tracker.Restore(found, h.now())
	h.lose(drops)
}

// Everything happens at the same time. In the end each occurrence is on the server, or was dropped
// with a reason.
func TestConcurrentUse(t *testing.T) {
	const emitters, perEmitter, keys = 6, 3000, 12
	h := &hammer{
		// Series end soon by this clock, and there is not enough room for the keys, so they end and
		// make room all the time.
		tracker: New(Options{Capacity: 8, FinishAfter: 40 * time.Millisecond, HeartbeatInterval: 20 * time.Millisecond}, start),
		remote:  newServer(t),
	}
	var emitting, others sync.WaitGroup
	var stop atomic.Bool
	for i := range emitters {
		emitting.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range perEmitter {
				// Some keys are much more frequent than others.
				h.emit(testKey(string("abcdefABCDEF"[min(rng.IntN(keys), rng.IntN(keys))])))
			}
		})
	}
	for i := range 3 {
		others.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 2))
			for !stop.Load() {
				if !h.work(rng) {
					runtime.Gosched()
				}
			}
		})
	}
	others.Go(func() {
		rng := rand.New(rand.NewPCG(0, 3))
		for !stop.Load() {
			switch rng.IntN(7) {
			case 0:
				h.tracker.Stats(h.now())
			case 1:
				f := h.tracker.Flush(h.now())
				f.Left()
				f.Stop()
			case 2:
				h.restore(rng)
			case 3:
				wakes(h.tracker, h.now())
			case 4:
				h.tracker.Tallies()
			default:
				h.lose(advance(h.tracker, h.now()))
			}
			runtime.Gosched()
		}
	})
	emitting.Wait()
	stop.Store(true)
	others.Wait()
	checkInvariants(t, h.tracker, h.now(), 3)

	for range 8 {
		h.clock.Add(int64(3 * time.Hour))
		h.lose(advance(h.tracker, h.now()))
		for h.work(nil) {
		}
	}
	checkInvariants(t, h.tracker, h.now(), 3)
	assert.Empty(t, h.tracker.all(), "all have ended and are written")
	sum := 0
	for _, ev := range h.remote.events {
		sum += ev.count()
	}
	assert.Equal(t, emitters*perEmitter, sum+h.dropped, "%d on the server, %d dropped", sum, h.dropped)
	s := h.tracker.Stats(start)
	assert.EqualValues(t, emitters*perEmitter, s.Occurrences)
	assert.Positive(t, sum)
	tallied := uint64(0)
	rows, _ := h.tracker.Tallies()
	for _, r := range rows {
		assert.Zero(t, r.Ongoing)
		tallied += r.Occurrences
	}
	assert.Equal(t, s.Occurrences, tallied)
}

// Flush misses no series that ends, or that was evicted and recurs, while it goes through the parts.
func TestFlushWhileSeriesMove(t *testing.T) {
	tr, keys := ongoingSeries(t, 4*batch)
	for i := range keys {
		tr.Count(&keys[i], tr.offset(start))
	}
	evicted := entryOf(tr, &keys[0])
	tr.evict(evicted, start)
	var moving sync.WaitGroup
	moving.Go(func() { tr.Observe(&keys[0], Occurrence{}, start) })
	moving.Go(func() { advance(tr, start.Add(tr.opts.FinishAfter)) })
	f := tr.Flush(start)
	moving.Wait()
	require.Equal(t, len(keys), f.Left())
	require.Contains(t, f.left, evicted)
	f.Stop()
}

// A flush is not done while it lists the series, although all that it has listed is written.
func TestFlushIsNotDoneWhileItLists(t *testing.T) {
	tr := New(Options{}, start)
	observe(t, tr, testKey("a"), start, Occurrence{})
	f := tr.Flush(start)
	f.listed = false
	write(t, tr, start, Create)
	require.Zero(t, f.Left())
	select {
	case <-f.Done:
		require.Fail(t, "done")
	default:
	}
	f.listed = true
	f.checkDone()
	<-f.Done
}

// Who waits for the lock gets it while a full table is cleared.
func TestClearLetsOthersIn(t *testing.T) {
	workload.Large(t)
	tr, keys := ongoingSeries(t, 65536)
	done := make(chan struct{})
	var drops []Drop
	var clearing sync.WaitGroup
	clearing.Go(func() {
		defer close(done)
		for i := range keys {
			tr.Count(&keys[i], tr.offset(start))
		}
		drops = tr.Clear("Shutdown", start)
	})
	between := 0
	for ended := false; !ended; {
		if left := tr.Stats(start).Ongoing; left > 0 && left < len(keys) {
			between++
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	clearing.Wait()
	assert.Positive(t, between)
	assert.Len(t, drops, len(keys))
}

// Once the tracker is sealed, no occurrence is added to a series.
func TestSealWhileCounting(t *testing.T) {
	tr, k := New(Options{}, start), testKey("a")
	observe(t, tr, k, start, Occurrence{}, Occurrence{})
	var counting sync.WaitGroup
	var dropped atomic.Int64
	for range 4 {
		counting.Go(func() {
			for range 3000 {
				if _, counted, _ := tr.Count(k, tr.offset(start)); !counted {
					dropped.Add(int64(len(tr.Observe(k, Occurrence{}, start))))
				}
			}
		})
	}
	tr.Seal("Shutdown")
	w := send(t, tr, start, Create)
	counting.Wait()
	tr.Apply(w, Response{}, start)
	assert.Zero(t, tr.Flush(start).Left(), "nothing was counted after Seal had returned")
	assert.EqualValues(t, 12002, int64(w.Series.Count)+dropped.Load())
	assert.EqualValues(t, 12002, tr.Stats(start).Occurrences)
}
