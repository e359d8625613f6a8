package tracker

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

// hammer is a tracker that many goroutines use, a server, and the books.
type hammer struct {
	tracker *Tracker
	clock   atomic.Int64 // everybody moves it, so series end

	mu      sync.Mutex
	remote  *server
	dropped int
	expired int
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

// work makes one request, and reports whether there was one. The server accepts all
// requests if rng is nil.
func (h *hammer) work(rng *rand.Rand) bool {
	w, drops, ok := h.tracker.Next(h.now())
	h.lose(drops)
	if !ok {
		return false
	}
	outcome := 99
	if rng != nil {
		outcome = rng.IntN(100)
	}
	var r Result
	var deleted *stored
	switch {
	case outcome == 0:
		r.Outcome = PushedBack
		h.clock.Add(int64(5 * time.Second)) // or the pause would fill the rest of the test
	case outcome == 1:
		r.Outcome, r.Unsent = Troubled, true
		h.tracker.Abandon(w, h.now())
		h.clock.Add(int64(time.Second))
	case outcome < 12:
		r.Outcome, r.Reason = Refused, "Malformed"
	default:
		h.mu.Lock()
		if outcome < 22 && w.WritesSeries() && !w.Creates() {
			deleted = h.remote.remove(w.Series.Name)
		}
		r, _ = h.remote.do(w)
		h.mu.Unlock()
	}
	h.lose(h.tracker.Apply(w, r, h.now()))
	if r.Outcome == Gone && deleted != nil {
		h.tracker.mu.Lock()
		if w.entry.life == forgotten && w.entry.silent {
			h.expired += deleted.count() // it was restored and had not occurred
		}
		h.tracker.mu.Unlock()
	}
	return true
}

// restore restores an Event as it was a moment ago.
func (h *hammer) restore(rng *rand.Rand) {
	h.mu.Lock()
	names := slices.Sorted(maps.Keys(h.remote.events))
	if len(names) == 0 {
		h.mu.Unlock()
		return
	}
	event := h.remote.events[names[rng.IntN(len(names))]].event.DeepCopy()
	h.mu.Unlock()
	found, err := series.FromEvent(event)
	if err != nil {
		panic(err)
	}
	runtime.Gosched()
	_, drops := h.tracker.Restore(found, h.now())
	h.lose(drops)
}

// Everything happens at the same time. In the end each occurrence is on the server,
// or was said to be dropped.
func TestConcurrentUse(t *testing.T) {
	const emitters, perEmitter, keys = 6, 4000, 12
	h := &hammer{
		// Series end soon by this clock, and there is not enough room for the keys, so
		// they end and make room all the time.
		tracker: New(Options{Capacity: 8, FinishAfter: 40 * time.Millisecond, HeartbeatInterval: 20 * time.Millisecond}, start),
		remote:  newServer(t),
	}
	// What has ended must not come back from a list.
	h.tracker.tombstones = newTombstones(1<<20, math.MaxInt64)

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
			switch rng.IntN(5) {
			case 0:
				h.tracker.Stats(h.now())
			case 1:
				f := h.tracker.Flush(h.now())
				f.Left()
				f.Stop()
			case 2:
				h.restore(rng)
			case 3:
				h.tracker.Wake(h.now())
			default:
				h.lose(h.tracker.Advance(h.now()))
			}
			runtime.Gosched()
		}
	})
	emitting.Wait()
	stop.Store(true)
	others.Wait()
	checkInvariants(t, h.tracker, 3)

	for range 5 {
		h.clock.Add(int64(time.Hour))
		h.lose(h.tracker.Advance(h.now()))
		for h.work(nil) {
		}
	}
	checkInvariants(t, h.tracker, 3)
	assert.Equal(t, [3]int{}, sizes(h.tracker), "all have ended and are written")
	sum := 0
	for _, ev := range h.remote.events {
		sum += ev.count()
	}
	assert.Equal(t, emitters*perEmitter, sum+h.dropped+h.expired, "%d on the server, %d dropped, %d expired", sum, h.dropped, h.expired)
	assert.EqualValues(t, emitters*perEmitter, h.tracker.Stats(start).Occurrences)
	assert.Positive(t, sum)
}

// manyKeys returns keys that differ in the object.
func manyKeys(n int) []series.Key {
	keys := make([]series.Key, n)
	for i := range keys {
		keys[i] = *testKey("a")
		keys[i].Regarding.Name = fmt.Sprintf("some-deployment-5d4f8c7b9d-%05d", i)
	}
	return keys
}

// ongoingSeries returns a tracker with n ongoing series, all written, and their
// keys.
func ongoingSeries(t testing.TB, n int) (*Tracker, []series.Key) {
	tr := New(Options{Capacity: n}, start)
	keys := manyKeys(n)
	for i := range keys {
		observe(tr, &keys[i], start, Occurrence{Note: "back-off restarting failed container"}, Occurrence{Note: "back-off restarting failed container"})
		write(t, tr, start, Create)
	}
	return tr, keys
}

// Flush does not miss series that end while it goes through the shards.
func TestFlushWhileSeriesEnd(t *testing.T) {
	for range 8 {
		tr, keys := ongoingSeries(t, 2000)
		for i := range keys {
			tr.Count(&keys[i], tr.offset(start))
		}
		var wg sync.WaitGroup
		wg.Go(func() { tr.Advance(start.Add(tr.opts.MaxWindow)) })
		for tr.Stats(start).Closing == 0 {
			runtime.Gosched()
		}
		f := tr.Flush(start)
		wg.Wait()
		require.Equal(t, len(keys), f.Left())
	}
}

// A flush is not done while it lists the series, although all that it has listed is written.
func TestFlushIsNotDoneWhileItLists(t *testing.T) {
	tr := New(Options{}, start)
	observe(tr, testKey("a"), start, Occurrence{})
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

// Flush does not miss an evicted series that continues while it goes through the shards: the
// shard of the series can be behind it then.
func TestFlushWhileEvictedSeriesContinue(t *testing.T) {
	continued := false
	for range 8 {
		tr, keys := ongoingSeries(t, 20_000)
		for i := range keys {
			tr.Count(&keys[i], tr.offset(start))
		}
		first := tr.shards[0].entries.all()
		evicted, other := first[0], first[1]
		k := evicted.Key()
		tr.end(evicted, series.Unknown, start)

		var stop atomic.Bool
		var wg sync.WaitGroup
		occur := func() (done bool) {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			for f := range tr.flushes {
				if _, passed := f.left[other]; passed && !f.listed {
					tr.begin(tr.hashOf(evicted), &k, Occurrence{}, start)
					continued = true
				}
			}
			return continued
		}
		wg.Go(func() {
			for !stop.Load() && !occur() {
				runtime.Gosched()
			}
		})
		f := tr.Flush(start)
		stop.Store(true)
		wg.Wait()
		_, waits := f.left[evicted]
		require.True(t, waits)
		if continued {
			require.Equal(t, accepting, evicted.life)
			return
		}
	}
	t.Skip("nothing has occurred during a flush")
}

// Once the tracker is sealed, no occurrence is added to a series.
func TestSealWhileCounting(t *testing.T) {
	tr := New(Options{}, start)
	k := testKey("a")
	observe(tr, k, start, Occurrence{}, Occurrence{})
	var wg sync.WaitGroup
	var dropped atomic.Int64
	for range 4 {
		wg.Go(func() {
			for range 3000 { // more than a counter has room for
				if _, counted, _ := tr.Count(k, tr.offset(start)); !counted {
					dropped.Add(int64(len(tr.Observe(k, Occurrence{}, start))))
				}
			}
		})
	}
	tr.Seal("Shutdown")
	w := send(t, tr, start, Create)
	wg.Wait()
	tr.Apply(w, Result{}, start)
	assert.Zero(t, tr.Flush(start).Left(), "nothing was counted after Seal had returned")
	assert.EqualValues(t, 12002, int64(w.Series.Count)+dropped.Load())
	assert.EqualValues(t, 12002, tr.Stats(start).Occurrences)
}
