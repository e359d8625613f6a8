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
func (w *world) fail(it *item, r Answer) time.Duration {
	w.now += RetryFirst
	n := w.namespaces[it.namespace]
	n.retries, n.interval, n.retryAt = 0, 0, never
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
		response Answer
		want     []time.Duration
	}{
		"failed":      {Answer{Outcome: Troubled}, seconds(2, 4, 8, 16, 32, 64, 128, 160, 160)},
		"pushed back": {Answer{Outcome: PushedBack}, seconds(2, 4, 8, 16, 32, 32, 32)},
		"refused":     {Answer{Outcome: Refused}, seconds(120, 240, 480, 960, 1920, 3000, 3000)},
		"denied":      {Answer{Outcome: Denied}, append(seconds(2, 4, 8, 16, 32, 64, 128, 256, 512), slices.Repeat(seconds(600), math.MaxUint8)...)},
		"delay":       {Answer{Outcome: Troubled, Delay: 3 * time.Second}, seconds(6, 6, 6)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, many)
			w.Schedule = New[*item](many, math.MaxInt64/4, doubled)
			it := w.add("a", 1)[0]
			for i, want := range tt.want {
				require.Equal(t, want, w.fail(it, tt.response), i)
				require.EqualValues(t, min(i+1, math.MaxUint8), it.slot.Failures())
				w.now += want - 1
				require.Empty(t, w.sent())
				w.now++
			}
			assert.Equal(t, tt.response.Outcome, it.slot.Last)

			other := Denied
			if tt.response.Outcome.Handled() {
				other = Troubled
			}
			assert.Equal(t, 2*time.Second, w.fail(it, Answer{Outcome: other}), "another back-off begins")
			w.now = it.slot.until
			assert.Equal(t, tt.want[len(tt.want)-1], w.fail(it, tt.response), "the first one continues")
			w.Release(it, w.now)
			assert.Equal(t, 4*time.Second, w.fail(it, Answer{Outcome: other}))
			w.now = it.slot.until
			w.Wake(w.now)
			assert.Equal(t, w.now+later*time.Duration(min(it.slot.Failures(), 8)), w.namespaces["a"].lanes[tried].items.earliest())
		})
	}
}

// The earliest due goes first. One that has failed is due later, for each of its failures.
func TestOrder(t *testing.T) {
	w := newWorld(t, many)
	w.add("a", 1)
	w.done(w.sent()[0], Answer{Outcome: Written})
	old, young, other := w.add("a", 1)[0], &item{namespace: "a"}, &item{namespace: "a"}
	for range 3 {
		w.fail(old, Answer{Outcome: Troubled})
		w.now += time.Minute
	}
	w.Ready(young, w.now, w.now)
	it, _ := w.next()
	require.Same(t, young, it)
	w.done(young, Answer{Outcome: Troubled})
	w.now += time.Minute
	w.Ready(other, w.now+later, w.now)
	w.Ready(other, w.now, w.now)
	w.Release(other, w.now)
	for _, want := range []*item{other, young, old} {
		it, ok := w.next()
		require.True(t, ok)
		require.Same(t, want, it)
		w.done(it, Answer{Outcome: Written})
	}

	// What waits in a sick namespace is due later.
	w = newWorld(t, many)
	w.fail(w.add("sick", 1)[0], Answer{Outcome: Troubled})
	w.add("sick", 1)
	w.Ready(&item{namespace: "healthy"}, w.now+later/2, w.now)
	it, _ = w.next()
	require.Equal(t, "healthy", it.namespace)
}

func TestBulkheads(t *testing.T) {
	w := newWorld(t, many)
	items := w.add("a", 10)
	assert.Len(t, w.sent(), 10)
	w.done(items[0], Answer{Outcome: Troubled})
	w.now += time.Second
	w.add("a", 10)
	assert.Empty(t, w.sent(), "nine are in flight")
	for _, it := range items[1:] {
		w.done(it, Answer{Outcome: Troubled})
	}
	w.now += time.Second
	both := w.sent()
	require.Len(t, both, 2)
	assert.Equal(t, 1, both[0].requests*both[1].requests, "new ones first")
	w.done(both[0], Answer{Outcome: Written})
	assert.Greater(t, len(w.sent()), 10, "one that passes opens the namespace")

	w = newWorld(t, many)
	w.add("a", 1)
	w.sent()
	w.now += SlowAfter
	w.add("a", 5)
	assert.Len(t, w.sent(), 1, "one that takes long makes a namespace sick")

	// One that passes is quick again, and its namespace healthy.
	w.now += SlowAfter
	for len(w.flights.nodes) > 0 {
		w.done(w.flights.First(), Answer{Outcome: Written})
	}
	assert.Len(t, w.sent(), 2, "those were slow")
	w.done(w.flights.First(), Answer{Outcome: Written})
	assert.Greater(t, len(w.sent()), 1)
}

// Namespaces take turns. Of five requests, one is less likely to pass.
func TestTurns(t *testing.T) {
	w := newWorld(t, many)
	next := func(n int) (sent []string) {
		for range n {
			it, _ := w.next()
			w.done(it, Answer{Outcome: Written})
			sent = append(sent, it.namespace)
		}
		return sent
	}
	w.add("a", 20)
	next(1)
	w.now += later
	w.add("b", 1)
	require.Equal(t, []string{"a", "b", "a"}, next(3))
	w.inRow = 0
	for range 2 {
		w.Ready(&item{namespace: "a", slot: Slot[*item]{failed: 1, Last: Troubled, until: w.now - 2*later}}, w.now, w.now)
	}
	for i := range 10 {
		it, _ := w.next()
		require.Equal(t, i%5 == 4, it.slot.Failures() > 0, i)
		w.done(it, Answer{Outcome: Written})
	}
}

// An item that fails is tried when it has waited for the patience of the Schedule, and then after its delay.
func TestPatience(t *testing.T) {
	w := newWorld(t, many)
	it := w.add("a", 1)[0]
	var waits []time.Duration
	for range 8 {
		require.Len(t, w.sent(), 1)
		waits = append(waits, w.now-it.began)
		w.done(it, Answer{Outcome: Refused})
		w.now = it.slot.until
	}
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	assert.Equal(t, []time.Duration{0, minutes(1), minutes(3), minutes(7), minutes(15), minutes(31), minutes(56), minutes(60)}, waits)
	assert.Equal(t, minutes(85), w.now-it.began)
}

// A shutdown tries everything at once, in one order, and again soon.
func TestHurry(t *testing.T) {
	order := func() (order []string) {
		w := newWorld(t, places)
		w.answer = func(it *item) Answer {
			order = append(order, it.namespace)
			return Answer{Outcome: Denied}
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
		pending, _, _ := w.Backlog(w.now)
		require.Equal(t, 90, pending)
		require.GreaterOrEqual(t, w.requests-requests, 90)
		for _, n := range w.held.nodes {
			require.GreaterOrEqual(t, n.item.slot.Failures(), 2)
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
	it := &item{namespace: "a", slot: Slot[*item]{failed: 30, Last: Denied, until: w.now + deniedMax}}
	w.Wait(it, w.now+time.Hour, w.now)
	w.Release(it, w.now)
	require.NotContains(t, w.namespaces, "a")
	w.Ready(it, w.now, w.now)
	assert.Contains(t, w.sent(), it)
}

func TestFailed(t *testing.T) {
	w := newWorld(t, many)
	for range 4 {
		w.add("a", 1)
		w.now += time.Minute
	}
	end := w.now
	for _, it := range w.sent() {
		w.done(it, Answer{Outcome: Troubled})
	}
	w.add("a", 1)
	items := w.Failed("a", end, many)
	require.Len(t, items, 4)
	assert.Equal(t, items[:1], w.Failed("a", end-4*time.Minute, many))
	assert.Len(t, w.Failed("a", end, 2), 2)
	assert.Empty(t, w.Failed("a", end-4*time.Minute-1, many))
	assert.Empty(t, w.Failed("unknown", end, many))
	w.now += RetryFirst
	sent := w.sent()
	assert.NotEmpty(t, sent)
	for _, it := range w.Failed("a", end, many) {
		assert.NotContains(t, sent, it, "it is in flight")
	}
}

// What is remembered about namespaces is bounded. Those that are paused are remembered until then.
func TestNamespacesAreForgotten(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Minute} {
		w := newWorld(t, many)
		for i := range 2 * MaxRemembered {
			it := w.add(strconv.Itoa(i), 1)[0]
			require.Equal(t, []*item{it}, w.sent())
			w.done(it, Answer{Outcome: PushedBack, Pause: pause})
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
	s, items := New[*item](many, time.Hour, nil), make([]item, n)
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
	s, items := New[*item](many, time.Hour, nil), make([]item, n)
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
		s.Done(it, Answer{Outcome: Written}, now)
		s.Wait(it, now+n, now)
	}))
}
