package schedule

import (
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func seconds(n ...int) (ds []time.Duration) {
	for _, n := range n {
		ds = append(ds, time.Duration(n)*time.Second)
	}
	return ds
}

// fail has the next request fail, which is for it, and returns when the item can be tried again.
func (w *world) fail(it *item, r Response) time.Duration {
	w.now += RetryFirst
	n := w.namespaces[it.namespace]
	for class := range w.throttles {
		w.throttles[class].failures = 0
	}
	n.throttle.failures = 0
	n.classify(w.now)
	w.plan(n)
	require.Equal(w.t, []*item{it}, w.sent())
	w.done(it, r)
	return it.slot.until - w.now
}

func namespaces(items []*item) (names []string) {
	for _, it := range items {
		names = append(names, it.namespace)
	}
	return names
}

func TestBackoff(t *testing.T) {
	doubled := func(d time.Duration) time.Duration { return 2 * d }
	for name, tt := range map[string]struct {
		response Response
		want     []time.Duration
	}{
		"failed":      {Response{Result: Failed}, seconds(2, 4, 8, 16, 32, 64, 128, 160, 160)},
		"pushed back": {Response{Result: PushedBack}, seconds(2, 4, 8, 16, 32, 32, 32)},
		"refused":     {Response{Result: Refused, Least: time.Minute, Most: 30 * time.Minute}, seconds(120, 240, 480, 960, 1920, 3600, 3600)},
		"denied": {Response{Result: Denied}, append(append(seconds(2, 4, 8, 16, 32, 64, 128, 256, 512),
			slices.Repeat(seconds(600), 15)...), slices.Repeat(seconds(2400), math.MaxUint8)...)},
		"at least": {Response{Result: Failed, Least: 3 * time.Second}, seconds(3, 4, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, many)
			w.Schedule = New[*item](many, doubled)
			it := w.add("a", 1)[0]
			for i, want := range tt.want {
				require.Equal(t, want, w.fail(it, tt.response), i)
				require.EqualValues(t, min(i+1, math.MaxUint8), it.slot.Failures)
				w.now += want - 1
				require.Empty(t, w.sent())
				w.now++
			}
			assert.Equal(t, tt.response.Result == Denied, it.slot.Last == Denied)

			w.fail(it, Response{Result: Failed})
			w.Release(it, w.now)
			w.fail(it, Response{Result: Failed})
			w.now = it.slot.until
			w.Wake(w.now)
			assert.Equal(t, w.now+later*time.Duration(min(len(tt.want)+2, 8)), w.namespaces["a"].lanes[tried].items.first())
		})
	}
}

// The earliest due goes first. One that has failed is due later, for each of its failures.
func TestOrder(t *testing.T) {
	w := newWorld(t, many)
	w.add("a", 1)
	w.done(w.sent()[0], Response{Result: Passed})
	old, young, other := w.add("a", 1)[0], &item{namespace: "a"}, &item{namespace: "a"}
	for range 3 {
		w.fail(old, Response{Result: Failed})
		w.now += time.Minute
	}
	w.Ready(young, w.now, w.now)
	it, _ := w.next()
	require.Same(t, young, it)
	w.done(young, Response{Result: Failed})
	w.now += time.Minute
	w.Ready(other, w.now+later, w.now)
	w.Ready(other, w.now, w.now)
	w.Release(other, w.now)
	for _, want := range []*item{other, young, old} {
		it, ok := w.next()
		require.True(t, ok)
		require.Same(t, want, it)
		w.done(it, Response{Result: Passed})
	}

	// What waits in a sick namespace is due later.
	w = newWorld(t, many)
	w.fail(w.add("sick", 1)[0], Response{Result: Failed})
	w.add("sick", 1)
	w.Ready(&item{namespace: "healthy"}, w.now+later/2, w.now)
	it, _ = w.next()
	require.Equal(t, "healthy", it.namespace)

	// What waits is due later after several failures in a row.
	w = newWorld(t, many)
	first := w.add("a", 2*Several)
	for failures := 1; failures <= Several; failures++ {
		failed, _ := w.next()
		w.done(failed, Response{Result: Denied})
		late := &item{namespace: "a"}
		w.Ready(late, w.now+1, w.now)
		w.now += RetryFirst / 2
		it, _ := w.next()
		require.Equal(t, failures < Several, slices.Contains(first, it))
		w.done(it, Response{})
		w.Remove(late)
	}
}

func TestBulkheads(t *testing.T) {
	w := newWorld(t, many)
	items := w.add("a", 10)
	assert.Len(t, w.sent(), 10)
	w.done(items[0], Response{Result: Failed})
	w.now += time.Second
	w.add("a", 10)
	assert.Empty(t, w.sent(), "nine are in flight")
	for _, it := range items[1:] {
		w.done(it, Response{Result: Failed})
	}
	w.now += time.Second
	both := w.sent()
	require.Len(t, both, 2)
	assert.Equal(t, 1, both[0].requests*both[1].requests, "new ones first")
	w.done(both[0], Response{Result: Passed})
	assert.Greater(t, len(w.sent()), 10, "one that passes opens the namespace")

	w = newWorld(t, many)
	w.add("a", 1)
	w.sent()
	w.now += SlowAfter
	w.add("a", 5)
	assert.Len(t, w.sent(), 1, "one that takes long makes a namespace sick")

	// Namespaces that hang share few places. Beside them, a healthy one has one, and one that only
	// fails has two.
	w = newWorld(t, places)
	w.takes = func(*item) time.Duration { return 30 * time.Second }
	for i := range 100 {
		w.add(strconv.Itoa(i), 3)
	}
	for _, n := range w.namespaces {
		n.failures, n.hung = 1, true
		w.plan(n)
	}
	w.run(w.now + 20*time.Second)
	assert.InDelta(t, Several+places/2, w.flights.Len(), places/2)
	w.add("a", 3)
	w.add("b", 3)
	w.namespaces["b"].failures = 1
	w.plan(w.namespaces["b"])
	assert.Equal(t, []string{"a", "b", "b"}, namespaces(w.sent()))

	// A shutdown uses the places of those that hang, too.
	w.now += SlowAfter
	w.Hurry(w.now)
	assert.Len(t, w.sent(), places)

	// Namespaces take turns, if what they have is due at about the same time.
	for _, late := range []time.Duration{time.Second / 2, 2 * time.Second} {
		w = newWorld(t, many)
		w.add("a", 10)
		w.Ready(&item{namespace: "b"}, w.now+late, w.now)
		w.next()
		it, _ := w.next()
		assert.Equal(t, late < time.Second, it.namespace == "b")
	}
}

// After several failures in a row, new items of a namespace have a rate. What arrives after
// the failures goes first.
func TestPace(t *testing.T) {
	w := newWorld(t, many)
	first := w.add("a", 1)[0]
	w.fail(first, Response{Result: Denied})
	w.Remove(first)
	w.add("a", 199)
	for begin := w.now; w.now < begin+10*time.Second; w.now += time.Millisecond {
		for _, it := range w.sent() {
			w.done(it, Response{Result: Denied})
			w.Remove(it)
		}
	}
	assert.InDelta(t, Several+20, w.requests, 1)
	late := w.add("a", 1)[0]
	w.now += RetryFirst
	assert.Equal(t, []*item{late}, w.sent())
	w.done(late, Response{Result: Passed})
	assert.Len(t, w.sent(), 200-w.requests+1+len(w.flights.nodes), "one that passes ends it")
	assert.Zero(t, w.namespaces["a"].shift)
}

// When a permission arrives, what has been denied for long is tried soon.
func TestPermissionArrives(t *testing.T) {
	w := newWorld(t, many)
	w.answer = goodOrBad(Response{Result: Denied})
	items := w.add("a", 20)
	other := w.add("b", 1)[0]
	w.run(w.now + 24*time.Hour)
	for _, it := range items[1:] {
		it.good = true
	}
	w.Wait(items[2], w.now+time.Hour, w.now)
	first := w.requests
	for w.latest == 0 {
		w.run(w.now + time.Second)
	}
	w.run(w.now + deniedMax + time.Minute)
	items[2].slot.until = w.now + time.Minute
	w.Ready(items[2], w.now, w.now)
	w.run(w.now + time.Second)
	pending, _ := w.Backlog(w.now)
	assert.Equal(t, 2, pending)
	w.run(w.now + deniedMax)
	assert.Greater(t, items[0].slot.until, w.now+deniedLong-2*deniedMax, "denied again")
	other.slot.until = w.now + deniedLong/2
	requests := other.requests
	w.add("b", 1)[0].good = true
	w.run(w.now + deniedMax + time.Minute)
	assert.Equal(t, requests, other.requests, "what has passed had not been denied")
	assert.Less(t, w.requests-first, 2*len(items))
	assert.True(t, other.slot.isDeniedOften())
}

// A shutdown tries everything at once, in one order, and again soon.
func TestHurry(t *testing.T) {
	order := func() (order []string) {
		w := newWorld(t, places)
		w.answer = func(it *item) Response {
			order = append(order, it.namespace)
			return Response{Result: Denied}
		}
		for n := range 30 {
			w.add(strconv.Itoa(n), 2)
		}
		w.run(w.now + time.Hour)
		for n := range 30 {
			w.Ready(&item{namespace: strconv.Itoa(n)}, w.now, w.now)
		}
		w.Hurry(w.now)
		requests := w.requests
		w.run(w.now + 2*SlowAfter)
		require.Equal(t, 90, w.pending)
		require.GreaterOrEqual(t, w.requests-requests, 90)
		for _, n := range w.held.nodes {
			require.GreaterOrEqual(t, int(n.item.slot.Failures), 2)
			require.LessOrEqual(t, n.at, w.now+SlowAfter)
		}
		return order
	}
	want := order()
	for range 5 {
		require.Equal(t, want, order())
	}
}

// What waits needs no namespace, unless it has something to write.
func TestReleaseInANamespaceThatIsForgotten(t *testing.T) {
	w := newWorld(t, many)
	it := &item{namespace: "a", slot: Slot[*item]{Failures: 30, Alike: 30, Last: Denied, until: w.now + deniedLong}}
	w.Wait(it, w.now+time.Hour, w.now)
	w.Release(it, w.now)
	require.NotContains(t, w.namespaces, "a")
	w.Ready(it, w.now, w.now)
	assert.Contains(t, w.sent(), it)
}

func TestPendingSince(t *testing.T) {
	w := newWorld(t, many)
	old := w.add("a", 1)[0]
	w.add("b", 1)
	w.now += time.Minute
	young := w.add("a", 1)[0]
	for before, want := range map[time.Duration][]*item{w.now - time.Minute: {old}, w.now: {old, young}, w.now - 2*time.Minute: nil} {
		got, failures := w.PendingSince("a", before)
		assert.ElementsMatch(t, want, got)
		assert.Zero(t, failures)
	}
	it, _ := w.next()
	require.Same(t, old, it)
	w.done(old, Response{Result: Failed})
	require.Len(t, w.sent(), 2)
	got, failures := w.PendingSince("a", w.now)
	assert.Equal(t, []*item{old}, got, "one is in flight")
	assert.Equal(t, 1, failures)
	got, _ = w.PendingSince("unknown", w.now)
	assert.Empty(t, got)
}

// What is remembered about namespaces is bounded. Those that are paused are remembered until then.
func TestNamespacesAreForgotten(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Minute} {
		w := newWorld(t, many)
		for i := range 2 * MaxRemembered {
			it := w.add(strconv.Itoa(i), 1)[0]
			require.Equal(t, []*item{it}, w.sent())
			w.done(it, Response{Result: PushedBack, RetryAfter: pause})
			w.Remove(it)
		}
		if pause > 0 {
			require.Len(t, w.namespaces, 2*MaxRemembered)
			w.now += pause - 1
			w.add("0", 1)
			require.Empty(t, w.sent())
			w.now++
			require.Len(t, w.sent(), 1)
		}
		assert.LessOrEqual(t, len(w.namespaces), MaxRemembered)
		assert.Equal(t, 1, w.namespaces["0"].failures)
		assert.Zero(t, w.paced.Len())
	}
}

func TestDueIsNeverEarly(t *testing.T) {
	for _, at := range []time.Duration{0, 1, -1, time.Hour, -time.Hour, math.MinInt64 + 1, math.MaxInt64} {
		w, it := newWorld(t, many), &item{}
		w.Wait(it, at, w.now)
		_, ok := w.Due(at - 1)
		assert.False(t, ok)
		due, _ := w.Wake(w.now)
		assert.Equal(t, at, due)
		got, _ := w.Due(at)
		assert.Same(t, it, got)
		assert.Zero(t, *it)
	}
}

func TestQueueShrinks(t *testing.T) {
	const n = 100_000
	s, items := New[*item](many, nil), make([]item, n)
	for i := range items {
		s.Ready(&items[i], time.Duration(7*i%n), 0)
	}
	for i := range items {
		s.Remove(&items[i])
		for _, q := range []*Queue[*item]{&s.namespaces[""].lanes[fresh].items, &s.namespaces[""].pending} {
			require.LessOrEqual(t, cap(q.nodes), max(64, 4*q.Len()+4))
		}
	}
}

func TestAllocations(t *testing.T) {
	const n = 100_000
	s, items := New[*item](many, nil), make([]item, n)
	for i := range items {
		s.Wait(&items[i], time.Duration(7*i%n), 0)
	}
	now := time.Duration(n)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now++
		it, _ := s.Due(now)
		s.Ready(it, now, now)
		s.Wake(now)
		s.Backlog(s.now)
		it, _ = s.Next(now)
		s.Done(it, Response{Result: Passed}, now)
		s.Wait(it, now+n, now)
	}))
}
