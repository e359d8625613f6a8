package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// item is the smallest element of a Schedule.
type item struct {
	slot      Slot[*item]
	namespace string
	good      bool          // see world.answer
	began     time.Duration // when its request could be made
	requests  int           // that were made
	released  bool          // the one in flight is slow, and does not count against world.workers
}

func (it *item) Slot() *Slot[*item] { return &it.slot }
func (it *item) Namespace() string  { return it.namespace }

// world is a Schedule, a clock, and a server.
type world struct {
	*Schedule[*item]
	t   *testing.T
	now time.Duration

	answer     func(*item) Response      // what the server responds
	takes      func(*item) time.Duration // how long it takes
	responses  []response                // that have not arrived, by the time when they do
	workers    int                       // requests in flight that are not slow, at most
	maxSlow    int                       // requests in flight that are
	busy, slow int

	requests int
	latest   time.Duration // of the items that have passed, the longest time since item.began
}

type response struct {
	at   time.Duration
	it   *item
	slow bool // no response: it takes long
}

const latency = 5 * time.Millisecond

func newWorld(t *testing.T) *world {
	return &world{
		Schedule: New[*item](nil), t: t, now: time.Hour, workers: 4, maxSlow: 64,
		answer: func(it *item) Response { return Response{Result: Passed} },
		takes:  func(*item) time.Duration { return latency },
	}
}

// add makes n items of a namespace ready, due now.
func (w *world) add(namespace string, n int) (items []*item) {
	for range n {
		it := &item{namespace: namespace, began: w.now}
		w.Ready(it, w.now, w.now)
		items = append(items, it)
	}
	return items
}

// next puts an item in flight if a request can be made.
func (w *world) next() (it *item, ok bool) {
	_, at := w.Wake(w.now)
	it, ok = w.Schedule.Next(w.now)
	require.Equal(w.t, ok, at <= w.now, "Wake is not exact")
	if ok {
		it.requests++
		w.requests++
	}
	return it, ok
}

// sent puts all items in flight that can be.
func (w *world) sent() (sent []*item) {
	for it, ok := w.next(); ok; it, ok = w.next() {
		sent = append(sent, it)
	}
	return sent
}

// done ends the request of it. If it has failed, the item is ready again.
func (w *world) done(it *item, r Response) {
	w.Done(it, r, w.now)
	switch r.Result {
	case Passed:
		w.latest = max(w.latest, w.now-it.began)
		w.Remove(it)
	default:
		w.Ready(it, w.now, w.now)
	}
}

func (w *world) later(r response) {
	i, _ := slices.BinarySearchFunc(w.responses, r.at+1, func(r response, at time.Duration) int { return cmp.Compare(r.at, at) })
	w.responses = slices.Insert(w.responses, i, r)
}

// run makes requests as a dispatcher does, until the given time.
func (w *world) run(until time.Duration) {
	for {
		for w.busy < w.workers {
			it, ok := w.next()
			if !ok {
				break
			}
			w.busy++
			took := w.takes(it)
			if took > SlowAfter {
				w.later(response{w.now + SlowAfter, it, true})
			}
			w.later(response{w.now + took, it, false})
		}
		at := until
		if _, next := w.Wake(w.now); w.busy < w.workers {
			require.Greater(w.t, next, w.now)
			at = min(at, next)
		}
		if len(w.responses) > 0 {
			at = min(at, w.responses[0].at)
		}
		if w.now = at; len(w.responses) == 0 || w.responses[0].at > at {
			if at >= until {
				return
			}
			continue
		}
		r := w.responses[0]
		w.responses = w.responses[1:]
		switch {
		case !r.slow && r.it.released:
			w.slow--
			r.it.released = false
			w.done(r.it, w.answer(r.it))
		case !r.slow:
			w.busy--
			w.done(r.it, w.answer(r.it))
		case w.slow < w.maxSlow:
			w.busy--
			w.slow++
			r.it.released = true
		}
	}
}

func results() map[string]Response {
	return map[string]Response{
		"429": {Result: PushedBack}, "500": {Result: Failed}, "403": {Result: Denied},
		"422": {Result: Refused, Least: time.Minute, Most: 30 * time.Minute},
	}
}

// goodOrBad passes the good items, and gives the others r.
func goodOrBad(r Response) func(*item) Response {
	return func(it *item) Response {
		if it.good {
			return Response{Result: Passed}
		}
		return r
	}
}

func TestBadObjectsDelayNoOther(t *testing.T) {
	for name, r := range results() {
		for _, bad := range []int{1, 10, 30, 100, 300} {
			for _, namespaces := range []int{1, 2} {
				t.Run(fmt.Sprint(name, " ", bad, " ", namespaces), func(t *testing.T) {
					w := newWorld(t)
					w.answer = goodOrBad(r)
					for i := range bad {
						w.add(fmt.Sprint("ns-", i%namespaces), 1)
					}
					for range 360 {
						w.run(w.now + 10*time.Second)
						w.add("ns-0", 1)[0].good = true
					}
					w.run(w.now + time.Minute)
					assert.Less(t, w.latest, time.Minute)
					t.Log(w.latest, w.requests)
				})
			}
		}
	}
}

func TestNewObjectsOfWhichManyFail(t *testing.T) {
	for name, r := range results() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.answer = goodOrBad(r)
			for i := range 4 * 3600 {
				w.add("ns", 1)[0].good = i*7%10 >= 4
				w.run(w.now + time.Second/4)
			}
			assert.Less(t, w.latest, time.Minute)
			t.Log(w.latest, w.requests)
		})
	}
}

func TestOutage(t *testing.T) {
	for _, namespaces := range []int{1, 20, 200} {
		w := newWorld(t)
		w.answer = goodOrBad(Response{Result: Failed})
		for i := range 200 {
			w.add(fmt.Sprint(i%namespaces), 1)
		}
		w.run(w.now + 30*time.Minute)
		assert.LessOrEqual(t, w.requests, 250)
		t.Log(w.requests)
		w.answer = func(*item) Response { return Response{Result: Passed} }
		w.run(w.now + 5*time.Minute)
		_, pending, _ := w.Backlog()
		assert.Zero(t, pending)
	}
}

// Namespaces begin to hang, whether or not they have worked before. They hold up neither a
// namespace that has worked nor new ones.
func TestNamespacesThatHang(t *testing.T) {
	for _, known := range []bool{false, true} {
		for _, burst := range []int{1, 4, 10} {
			w, hangs := newWorld(t), false
			w.answer = goodOrBad(Response{Result: Failed})
			w.takes = func(it *item) time.Duration {
				if it.good || !hangs {
					return latency
				}
				return 30 * time.Second
			}
			for n := range 50 {
				if known {
					w.add(fmt.Sprint("hangs-", n), 1)[0].good = true
				}
			}
			w.run(w.now + time.Minute)
			hangs = true
			for i := range 60 {
				for n := range 50 {
					w.add(fmt.Sprint("hangs-", n), burst)
				}
				w.add("ns", 1)[0].good = true
				w.add(fmt.Sprint("new-", i), 1)[0].good = true
				w.run(w.now + time.Duration(i)*time.Second)
			}
			assert.Less(t, w.latest, time.Second, "known: %t, burst: %d", known, burst)
		}
	}
}

func TestManyAreDenied(t *testing.T) {
	w := newWorld(t)
	w.answer = goodOrBad(Response{Result: Denied})
	w.add("ns", 12_000)
	w.run(w.now + time.Hour)
	pending, _ := w.PendingSince("ns", w.now-time.Hour)
	for _, it := range pending {
		w.Remove(it)
	}
	w.run(w.now + 11*time.Minute)
	assert.LessOrEqual(t, w.requests, 8000)
	t.Log(w.requests)
}
