package series

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dirtyQueue is a work queue as Begin wants it: an entry is handed out to one
// worker at a time, and again if it was added meanwhile.
type dirtyQueue struct {
	mu     sync.Mutex
	dirty  map[*Entry]bool
	atWork map[*Entry]bool
}

func (q *dirtyQueue) add(entries ...*Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range entries {
		q.dirty[e] = true
	}
}

func (q *dirtyQueue) get() *Entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	for e := range q.dirty {
		if !q.atWork[e] {
			delete(q.dirty, e)
			q.atWork[e] = true
			return e
		}
	}
	return nil
}

func (q *dirtyQueue) done(e *Entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.atWork, e)
}

// hammer is a table in the middle of many goroutines, and the books.
type hammer struct {
	table *Table
	queue dirtyQueue
	clock atomic.Int64 // everybody moves it, so that windows pass

	mu       sync.Mutex
	known    []*Entry
	onServer map[*Entry]int
	sum      int // what is on the server for good
	dropped  int
}

func (h *hammer) now() time.Time {
	return start.Add(time.Duration(h.clock.Add(int64(time.Millisecond))))
}

func (h *hammer) apply(eff Effects) {
	h.queue.add(eff.Dirty...)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known = append(h.known, eff.Dirty...)
	for _, d := range eff.Dropped {
		h.dropped += d.Count
	}
}

func (h *hammer) emit(k *Key) {
	now := h.now()
	e, counted, wantNote := h.table.Count(k, now)
	switch {
	case !counted:
		h.apply(h.table.Observe(k, Occurrence{Note: "note"}, now))
	case wantNote:
		h.table.Describe(e, Occurrence{Note: "later", Annotations: map[string]string{"a": "1"}}, now)
	}
}

// work writes one entry and reports whether there was one.
func (h *hammer) work(rng *rand.Rand) bool {
	e := h.queue.get()
	if e == nil {
		return false
	}
	defer h.queue.done(e)
	w, eff, ok := h.table.Begin(e, h.now())
	h.apply(eff)
	if !ok {
		return true
	}
	outcome := 9
	if rng != nil {
		outcome = rng.IntN(10)
	}
	// Reading what is to be written must be safe while occurrences come in.
	if w.Creates() {
		w.Series.Event()
	} else if _, err := w.Series.Patch(); err != nil {
		panic(err)
	}
	switch {
	case outcome == 0 && !w.Creates():
		h.mu.Lock()
		delete(h.onServer, e)
		h.mu.Unlock()
		h.table.Gone(e, w)
		h.queue.add(e)
	case outcome == 0:
		h.table.Taken(e, w, h.now())
		h.queue.add(e)
	case outcome == 1:
		h.apply(h.table.Failed(e, w))
		h.queue.add(e)
	case outcome == 2:
		h.mu.Lock()
		h.sum += h.onServer[e]
		delete(h.onServer, e)
		h.mu.Unlock()
		h.apply(h.table.Refuse(e, w, "Malformed", h.now()))
	default:
		h.mu.Lock()
		h.onServer[e] = int(w.Series.Count)
		h.mu.Unlock()
		again, eff := h.table.Written(e, w, h.now())
		h.apply(eff)
		if again {
			h.queue.add(e)
		}
	}
	return true
}

// look does what others do with entries, whatever these are doing.
func (h *hammer) look(rng *rand.Rand) {
	h.mu.Lock()
	var e *Entry
	if len(h.known) > 0 {
		e = h.known[rng.IntN(len(h.known))]
	}
	h.mu.Unlock()
	if e == nil {
		return
	}
	h.table.Len()
	e.Urgency()
	switch rng.IntN(5) {
	case 0:
		h.apply(h.table.Expire(e, h.now()))
	case 1:
		h.apply(h.table.Beat(e))
	case 2:
		for _, p := range h.table.Flush() {
			h.queue.add(p.Entry)
			h.table.Settled(p)
		}
	case 3:
		h.table.Status(e, h.now())
	case 4:
		h.table.Occurrences()
	}
}

// Everything at the same time; in the end each occurrence is on the server or
// was said to be dropped.
func TestConcurrentUse(t *testing.T) {
	const emitters, perEmitter, keys = 6, 4000, 12
	h := &hammer{
		// The window is short for this clock and the table too small for the
		// keys, so series end and make room all the time.
		table:    NewTable(Options{Capacity: 8, Window: 40 * time.Millisecond, NoteInterval: 5 * time.Millisecond}, start),
		queue:    dirtyQueue{dirty: map[*Entry]bool{}, atWork: map[*Entry]bool{}},
		onServer: map[*Entry]int{},
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
			h.look(rng)
			runtime.Gosched()
		}
	})
	emitting.Wait()
	stop.Store(true)
	others.Wait()
	checkInvariants(t, h.table, 3)

	// The rest, with a server that takes everything.
	h.clock.Add(int64(time.Hour))
	for _, e := range h.known {
		h.apply(h.table.Expire(e, h.now()))
	}
	for _, p := range h.table.Flush() {
		h.queue.add(p.Entry)
	}
	for h.work(nil) {
	}
	checkInvariants(t, h.table, 3)
	active, closing := h.table.Len()
	assert.Zero(t, active+closing, "all have ended and are written")
	for _, n := range h.onServer {
		h.sum += n
	}
	assert.Equal(t, emitters*perEmitter, h.sum+h.dropped, "%d on the server, %d dropped", h.sum, h.dropped)
	assert.EqualValues(t, emitters*perEmitter, h.table.Occurrences())
	assert.Positive(t, h.sum)
}

// A series that ends while Flush goes through the shards is not missed.
func TestFlushWhileSeriesEnd(t *testing.T) {
	for range 8 {
		table := NewTable(Options{}, start)
		var entries []*Entry
		for i := range 2000 {
			k := testKey("a")
			k.Regarding.Name = fmt.Sprint(i)
			entries = append(entries, table.Observe(k, Occurrence{}, start).Dirty...)
		}
		var wg sync.WaitGroup
		half := make(chan struct{})
		wg.Go(func() {
			for i, e := range entries {
				if i == len(entries)/2 {
					close(half)
				}
				table.Expire(e, start.Add(DefaultWindow))
			}
		})
		<-half
		found := map[*Entry]bool{}
		for _, p := range table.Flush() {
			found[p.Entry] = true
		}
		wg.Wait()
		require.Len(t, found, len(entries))
	}
}

// Once the table is sealed, no occurrence is added to a series.
func TestSealWhileCounting(t *testing.T) {
	table := NewTable(Options{}, start)
	k := testKey("a")
	e := table.Observe(k, Occurrence{}, start).Dirty[0]
	table.Observe(k, Occurrence{}, start)
	var wg sync.WaitGroup
	var dropped atomic.Int64
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if _, counted, _ := table.Count(k, start); !counted {
					dropped.Add(int64(len(table.Observe(k, Occurrence{}, start).Dropped)))
				}
			}
		})
	}
	table.Seal("Shutdown")
	w, _, ok := table.Begin(e, start)
	require.True(t, ok)
	wg.Wait()
	table.Written(e, w, start)
	assert.Empty(t, table.Flush(), "nothing came in after Seal had returned")
	assert.EqualValues(t, 4002, int64(w.Series.Count)+dropped.Load())
	assert.EqualValues(t, 4002, table.Occurrences())
}
