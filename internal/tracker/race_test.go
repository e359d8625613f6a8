package tracker

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
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

// hammer is a table in the middle of many goroutines, a server, and the books.
type hammer struct {
	table *Table
	queue dirtyQueue
	clock atomic.Int64 // everybody moves it, so that windows pass

	mu      sync.Mutex
	known   []*Entry
	remote  *server
	dropped int
	expired int
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

func (h *hammer) emit(k *series.Key) {
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
	var again bool
	var deleted *stored
	switch outcome {
	case 0:
		eff, again = h.table.Failed(e, w), true
	case 1:
		again, eff = h.table.Refuse(e, w, "Malformed", h.now())
	case 2:
		if w.Kind < WriteLook && !w.Creates() {
			h.mu.Lock()
			deleted = h.remote.lose(w.Series.Name)
			h.mu.Unlock()
		}
		fallthrough
	default:
		h.mu.Lock()
		// What is to be written is read while occurrences come in.
		said, ev := h.remote.do(&w)
		var event *eventsv1.Event
		if ev != nil {
			event = ev.event.DeepCopy()
		}
		h.mu.Unlock()
		switch {
		case said == exists:
			h.table.Taken(e, w, h.now())
			again = true
		case said == absent:
			again, eff = h.table.Gone(e, w)
			if len(eff.Ended) > 0 && deleted != nil {
				// It was restored and had not occurred: there is no more of it.
				h.mu.Lock()
				h.expired += deleted.count()
				h.mu.Unlock()
			}
		case w.Kind == WriteLook:
			again, eff = h.table.Found(e, w, event, h.now())
		default:
			again, eff = h.table.Written(e, w, h.now())
		}
	}
	h.apply(eff)
	if again {
		h.queue.add(e)
	}
	return true
}

// restore takes in an Event as it was a moment ago.
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
	if e, eff := h.table.Restore(found, rng.Float64(), h.now()); e != nil {
		h.apply(eff)
		h.apply(Effects{Dirty: []*Entry{e}})
	}
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
	switch rng.IntN(6) {
	case 5:
		h.restore(rng)
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
		table:  NewTable(Options{Capacity: 8, Window: 40 * time.Millisecond, NoteInterval: 5 * time.Millisecond}, start),
		queue:  dirtyQueue{dirty: map[*Entry]bool{}, atWork: map[*Entry]bool{}},
		remote: newServer(t),
	}
	// What has ended must not come back from a list.
	h.table.closed = newClosedNames(1 << 20)

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
	sum := 0
	for _, ev := range h.remote.events {
		sum += ev.count()
	}
	assert.Equal(t, emitters*perEmitter, sum+h.dropped+h.expired, "%d on the server, %d dropped, %d expired", sum, h.dropped, h.expired)
	assert.EqualValues(t, emitters*perEmitter, h.table.Occurrences())
	assert.Positive(t, sum)
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
			for range 3000 { // more than a tally has room for
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
	assert.EqualValues(t, 12002, int64(w.Series.Count)+dropped.Load())
	assert.EqualValues(t, 12002, table.Occurrences())
}

// A series that was restored is not given up as one that has not occurred when it
// occurs just then.
func TestGoneWhileCounting(t *testing.T) {
	table := NewTable(Options{}, start)
	var keys []*series.Key
	var entries []*Entry
	var beats []Write
	for i := range 2000 {
		k := testKey("a")
		k.Regarding.Name = fmt.Sprint("pod-", i)
		found := &series.Series{
			Key: *k, Namespace: k.Regarding.Namespace, Name: k.BaseName(), Instance: "controller-0",
			State: series.Ongoing, First: start.Add(-time.Hour), Last: start.Add(-time.Minute), Count: 10,
		}
		e, _ := table.Restore(found, 0, start)
		require.NotNil(t, e)
		table.Beat(e)
		w, _, ok := table.Begin(e, start)
		require.True(t, ok)
		keys, entries, beats = append(keys, k), append(entries, e), append(beats, w)
	}
	var wg sync.WaitGroup
	var at atomic.Int64 // both come to the same entry at about the same time
	wg.Go(func() {
		for i, k := range keys {
			for at.Load() < int64(i+1) {
				runtime.Gosched()
			}
			if _, counted, _ := table.Count(k, start); !counted {
				table.Observe(k, Occurrence{}, start)
			}
		}
	})
	occurred := 0
	for i, e := range entries {
		at.Store(int64(i + 1))
		for range i % 4096 {
			at.Load() // sometimes it is the one that comes first
		}
		again, eff := table.Gone(e, beats[i])
		assert.Empty(t, eff.Dropped)
		if again {
			occurred++
		}
	}
	wg.Wait()
	checkInvariants(t, table, 0)
	fresh := 0
	for i := range table.shards {
		for _, e := range table.shards[i].all() {
			if e.counted() == 1 {
				fresh++
			}
		}
	}
	assert.Equal(t, len(keys), occurred+fresh, "%d go on, %d began anew", occurred, fresh)
}
