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
	passed    time.Duration // when the latest one passed, or zero
	beat      time.Duration // if not zero, from one that passed to the next one
	ready     time.Duration // when it had something to write
	turns     []turnOf
}

// turnOf is a request of an item: when it had something to write, and when it was sent.
type turnOf struct{ ready, sent time.Duration }

func (it *item) Slot() *Slot[*item] { return &it.slot }
func (it *item) Namespace() string  { return it.namespace }

// world is a Schedule, a clock, and a server.
type world struct {
	*Schedule[*item]
	t   *testing.T
	now time.Duration

	answer    func(*item) Answer        // what the server responds
	takes     func(*item) time.Duration // how long it takes
	responses []response                // that have not arrived, by the time when they do

	qps    float64 // if not zero, tokens a second, up to twice as many at once
	tokens float64
	filled time.Duration

	requests int
	latest   time.Duration // of the items that have passed, the longest time since item.began
}

type response struct {
	at time.Duration
	it *item
}

const (
	latency = 5 * time.Millisecond
	places  = 10
	many    = 1 << 20 // places, where they are not the subject
)

func newWorld(t *testing.T, places int) *world {
	return &world{
		Schedule: New[*item](places, time.Hour, nil), t: t, now: time.Hour,
		answer: func(it *item) Answer { return Answer{Outcome: Written} },
		takes:  func(*item) time.Duration { return latency },
	}
}

// add makes n items of a namespace ready, due now.
func (w *world) add(namespace string, n int) (items []*item) {
	for range n {
		it := &item{namespace: namespace, began: w.now, ready: w.now}
		w.Ready(it, w.now, w.now)
		items = append(items, it)
	}
	return items
}

// next puts an item in flight if a request can be made.
func (w *world) next() (it *item, ok bool) {
	_, at := w.Wake(w.now)
	it, ok = w.Next(w.now)
	require.Equal(w.t, ok, at <= w.now, "Wake is not exact")
	if ok {
		it.turns = append(it.turns, turnOf{it.ready, w.now})
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
func (w *world) done(it *item, r Answer) {
	w.Done(it, r, w.now)
	switch r.Outcome {
	case Written:
		w.latest = max(w.latest, w.now-it.began)
		if it.passed = w.now; it.beat > 0 {
			w.Wait(it, w.now+it.beat, w.now)
			return
		}
		w.Remove(it)
	default:
		w.Ready(it, w.now, w.now)
	}
}

// token returns when the next request has a token of the rate limiter.
func (w *world) token() time.Duration {
	if w.qps == 0 {
		return never
	}
	w.tokens = min(w.tokens+w.qps*(w.now-w.filled).Seconds(), 2*w.qps)
	if w.filled = w.now; w.tokens >= 1 {
		return w.now
	}
	return w.now + time.Duration((1-w.tokens)/w.qps*float64(time.Second)) + 1
}

func (w *world) later(r response) {
	i, _ := slices.BinarySearchFunc(w.responses, r.at+1, func(r response, at time.Duration) int { return cmp.Compare(r.at, at) })
	w.responses = slices.Insert(w.responses, i, r)
}

// run makes requests as a dispatcher does, until the given time.
func (w *world) run(until time.Duration) {
	for {
		for it, ok := w.Due(w.now); ok; it, ok = w.Due(w.now) {
			it.ready = w.now
			w.Ready(it, w.now+15*time.Minute, w.now)
		}
		for w.token() <= w.now {
			it, ok := w.next()
			if !ok {
				break
			}
			w.tokens--
			w.later(response{w.now + w.takes(it), it})
		}
		due, next := w.Wake(w.now)
		at := min(until, due, max(next, w.token()))
		require.True(w.t, at > w.now || at == until)
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
		w.done(r.it, w.answer(r.it))
	}
}

func results() map[string]Answer {
	return map[string]Answer{
		"429": {Outcome: PushedBack}, "500": {Outcome: Troubled}, "403": {Outcome: Denied},
		"422": {Outcome: Refused},
	}
}

// goodOrBad passes the good items, and gives the others r.
func goodOrBad(r Answer) func(*item) Answer {
	return func(it *item) Answer {
		if it.good {
			return Answer{Outcome: Written}
		}
		return r
	}
}

func TestBadObjectsDelayNoOther(t *testing.T) {
	for name, r := range results() {
		for _, bad := range []int{1, 10, 30, 100, 300} {
			for _, namespaces := range []int{1, 2} {
				t.Run(fmt.Sprint(name, " ", bad, " ", namespaces), func(t *testing.T) {
					w := newWorld(t, places)
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

// New objects appear all the time. Of the first kind, 4 of 10 fail, and of the others all but one in
// three minutes.
func TestNewObjectsOfWhichManyFail(t *testing.T) {
	for name, r := range results() {
		for each, most := range map[time.Duration]time.Duration{time.Second / 4: time.Minute, time.Second: 5 * time.Second, 3 * time.Second: 5 * time.Second} {
			t.Run(fmt.Sprint(name, " ", each), func(t *testing.T) {
				w := newWorld(t, places)
				w.answer = goodOrBad(r)
				for i := range 4 * 3600 {
					isGood := i*7%10 >= 4
					if each >= time.Second {
						isGood = i%int(3*time.Minute/each) == 3
					}
					w.add("ns", 1)[0].good = isGood
					w.run(w.now + each)
				}
				assert.Less(t, w.latest, most)
				t.Log(w.latest, w.requests)
			})
		}
	}
}

// Namespaces begin to hang, whether or not they have worked before. They hold up neither a
// namespace that has worked nor new ones.
func TestNamespacesThatHang(t *testing.T) {
	for _, known := range []bool{false, true} {
		for _, burst := range []int{1, 4, 10} {
			w, hangs := newWorld(t, places), false
			w.answer = goodOrBad(Answer{Outcome: Troubled})
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
	w := newWorld(t, places)
	w.answer = goodOrBad(Answer{Outcome: Denied})
	w.add("ns", 12_000)
	w.run(w.now + time.Hour)
	assert.LessOrEqual(t, w.requests, 16_000) // one for each, and one a second
	t.Log(w.requests)
}
