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
	w.now += pace
	w.budget = newBudget(retryFirst)
	require.Equal(w.t, []*item{it}, w.sent())
	w.done(it, r)
	return it.slot.until - w.now
}

func assertBetween(t *testing.T, least, most, got int) {
	t.Helper()
	assert.True(t, least <= got && got <= most, "%d is not in [%d, %d]", got, least, most)
}

func TestBackoff(t *testing.T) {
	doubled := func(d time.Duration) time.Duration { return 2 * d }
	for name, tt := range map[string]struct {
		response Response
		want     []time.Duration
	}{
		"failed":      {Response{Result: Failed}, seconds(2, 4, 8, 16, 32, 64, 128, 240, 240)},
		"pushed back": {Response{Result: PushedBack}, seconds(2, 4, 8, 16, 32, 64, 128, 240, 240)},
		"refused":     {Response{Result: Refused, Least: time.Minute, Most: 30 * time.Minute}, seconds(120, 240, 480, 960, 1920, 3600, 3600)},
		"denied": {Response{Result: Denied}, append(append(seconds(2, 4, 8, 16, 32, 64, 128, 256, 512),
			slices.Repeat(seconds(600), 15)...), seconds(2400, 2400)...)},
		"at least": {Response{Result: Failed, Least: 3 * time.Second}, seconds(3, 4, 8)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Schedule = New[*item](doubled)
			it := w.add("a", 1)[0]
			for i, want := range tt.want {
				require.Equal(t, want, w.fail(it, tt.response), i)
				require.EqualValues(t, i+1, it.slot.Failures)
				w.now += want - 1
				require.Empty(t, w.sent())
				w.now++
			}
			assert.Equal(t, tt.response.Result == Denied, it.slot.Last == Denied)

			w.fail(it, Response{Result: Failed})
			w.Release(it, w.now)
			w.fail(it, Response{Result: Failed})
		})
	}
}

// A push-back concerns its item, until the server asks for a pause, or pushes back in several
// namespaces.
func TestPauseOfTheServer(t *testing.T) {
	for name, tt := range map[string]struct {
		namespaces []string
		retryAfter time.Duration
		want       []time.Duration // the pauses
	}{
		"one namespace":      {[]string{"a", "a", "a", "a"}, 0, nil},
		"several namespaces": {[]string{"a", "b", "b", "a", "b", "a"}, 0, seconds(5, 10, 20, 40, 40)},
		"one asks":           {[]string{"a", "a", "a", "a", "a", "a", "a"}, time.Second, seconds(5, 10, 20, 40, 80, 160, 300)},
		"for more":           {[]string{"a", "a"}, time.Minute, seconds(60, 60)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var pauses []time.Duration
			for _, namespace := range tt.namespaces {
				it := w.add(namespace, 1)[0]
				require.Equal(t, []*item{it}, w.sent())
				w.done(it, Response{Result: PushedBack, RetryAfter: tt.retryAfter})
				w.Remove(it)
				if until, _, paused := w.Pause(w.now); paused {
					pauses = append(pauses, until-w.now)
					other := w.add("c", 1)[0]
					require.Empty(t, w.sent(), "no namespace may send")
					w.Remove(other)
					w.now = until
				}
			}
			assert.Equal(t, tt.want, pauses)
			w.add("c", 2)
			w.done(w.sent()[0], Response{Result: Passed})
			_, _, paused := w.Pause(w.now)
			assert.False(t, paused)
		})
	}
}

// The most promising request probes whether a pause is over. One that takes long lets another
// one probe.
func TestProbes(t *testing.T) {
	w := newWorld(t)
	failed := w.add("a", 1)
	w.done(w.sent()[0], Response{Result: PushedBack, RetryAfter: time.Second})
	w.now += time.Minute
	fresh, elsewhere := &item{namespace: "a"}, &item{namespace: "b"}
	w.Ready(fresh, w.now+time.Hour, w.now)
	w.Ready(elsewhere, w.now+2*time.Hour, w.now)
	for _, want := range []*item{elsewhere, fresh, failed[0]} {
		sent := w.sent()
		require.Equal(t, []*item{want}, sent)
		_, request := w.Wake(w.now)
		require.Equal(t, w.now+SlowAfter, request)
		if want != failed[0] {
			w.now += SlowAfter
		}
	}
	w.done(elsewhere, Response{Result: Failed})
	w.add("c", 1)
	require.Empty(t, w.sent(), "another one probes")
	w.done(fresh, Response{Result: Refused})
	_, total, paused := w.Pause(w.now)
	assert.False(t, paused)
	assert.Equal(t, time.Minute+2*SlowAfter, total)
}

// A request that was sent before a pause can only prolong it for as long as it says.
func TestPushBackFromBeforeThePause(t *testing.T) {
	w := newWorld(t)
	w.add("a", 1)
	w.done(w.sent()[0], Response{Result: Passed})
	w.add("a", 4)
	for i, it := range w.sent() {
		w.done(it, Response{Result: PushedBack, RetryAfter: time.Duration(i) * 2 * time.Second})
		until, _, paused := w.Pause(w.now)
		require.Equal(t, i > 0, paused)
		require.True(t, i == 0 || until-w.now == max(5*time.Second, time.Duration(i)*2*time.Second))
	}
}

// The earliest due goes first. One that has failed is due later, for each of its failures.
func TestOrder(t *testing.T) {
	w := newWorld(t)
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
	w.budget = newBudget(retryFirst)
	for _, want := range []*item{other, young, old} {
		it, ok := w.next()
		require.True(t, ok)
		require.Same(t, want, it)
		w.done(it, Response{Result: Passed})
	}

	// What waits in a sick namespace is due later.
	w = newWorld(t)
	w.fail(w.add("sick", 1)[0], Response{Result: Failed})
	w.add("sick", 1)
	w.Ready(&item{namespace: "healthy"}, w.now+later/2, w.now)
	it, _ = w.next()
	require.Equal(t, "healthy", it.namespace)

	// One failure makes nothing that waits due later, and two do.
	w = newWorld(t)
	first := w.add("a", 5)
	for _, want := range []bool{true, false} {
		failed, _ := w.next()
		w.done(failed, Response{Result: Denied})
		late := &item{namespace: "a"}
		w.Ready(late, w.now+1, w.now)
		it, _ := w.next()
		require.Equal(t, want, slices.Contains(first, it))
		w.done(it, Response{})
		w.Remove(late)
	}
}

func TestBulkheads(t *testing.T) {
	w := newWorld(t)
	pass := func(namespace string) {
		w.add(namespace, 1)
		for _, it := range w.sent() {
			w.done(it, Response{Result: Passed})
		}
	}
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

	// One that takes long makes a namespace sick. After a minute its request does not count.
	w = newWorld(t)
	pass("a")
	items = w.add("a", 1)
	w.sent()
	w.now += SlowAfter
	w.add("a", 5)
	assert.Len(t, w.sent(), 1)
	w.now += SlowAfter + hangsAfter
	assert.Len(t, w.sent(), 2)

	// Sick namespaces that hang share few places. Beside them, a healthy one has one.
	w = newWorld(t)
	w.takes = func(*item) time.Duration { return 30 * time.Second }
	for i := range 100 {
		w.add(strconv.Itoa(i), 3)
	}
	for _, n := range w.namespaces {
		n.failures = 1
		w.plan(n)
	}
	w.run(w.now + 20*time.Second)
	assertBetween(t, slowPlaces, slowPlaces+w.workers, w.flights.Len())
	w.add("a", 3)
	sent := w.sent()
	require.Len(t, sent, 1)
	assert.Equal(t, "a", sent[0].namespace)

	// A shutdown uses the places of the sick ones, too.
	w.Hurry(w.now)
	sent = w.sent()
	assert.Greater(t, len(sent), 50)
	assert.True(t, slices.ContainsFunc(sent, func(it *item) bool { return it.namespace == "a" }))

	// Namespaces take turns, if what they have is due at about the same time.
	for _, late := range []time.Duration{time.Second / 2, 2 * time.Second} {
		w = newWorld(t)
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
	w := newWorld(t)
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
	w.now += pace
	assert.Equal(t, []*item{late}, w.sent())
	w.done(late, Response{Result: Passed})
	assert.Len(t, w.sent(), 200-w.requests+1+len(w.flights.nodes), "one that passes ends it")
	assert.Zero(t, w.namespaces["a"].shift)
}

// All namespaces share the budget of retries.
func TestBudget(t *testing.T) {
	w := newWorld(t)
	retries := func(d time.Duration) (n int) {
		for end := w.now + d; w.now < end; w.now += 100 * time.Millisecond {
			for _, it := range w.sent() {
				n++
				w.done(it, Response{Result: Failed})
			}
		}
		return n
	}
	for i := range 300 {
		w.add(strconv.Itoa(i), 1)
	}
	assert.Equal(t, 300+retryBurst, retries(3*time.Second))
	retries(10 * time.Minute)
	assert.LessOrEqual(t, retries(time.Hour), 30, "nothing passes")

	w.answer = func(it *item) Response { return Response{Result: Failed} }
	requests := w.requests
	for range 60 {
		w.add("good", 1)
		require.Equal(t, "good", w.sent()[0].namespace)
		good := w.flights.First()
		w.done(good, Response{Result: Passed})
		w.run(w.now + time.Second)
	}
	assertBetween(t, 60+10, 60+60, w.requests-requests) // something passes

	w.answer = func(*item) Response { return Response{Result: Denied} }
	w.run(w.now + 4*time.Minute)
	requests = w.requests
	w.run(w.now + 2*time.Minute)
	assertBetween(t, 100, 121, w.requests-requests) // the server handles retries

	w.answer = func(*item) Response { return Response{Result: Passed} }
	w.run(w.now + 6*time.Minute)
	_, pending, _ := w.Backlog()
	assert.Zero(t, pending, "a retry that passes fills the budget")
}

// When a permission arrives, what has been denied for long is tried soon.
func TestPermissionArrives(t *testing.T) {
	w := newWorld(t)
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
	ready, pending, _ := w.Backlog()
	assert.Equal(t, []int{0, 2}, []int{ready, pending})
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
		w := newWorld(t)
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
		w.run(w.now + 2*hurriedMax)
		require.Equal(t, 90, w.pending.Len())
		require.GreaterOrEqual(t, w.requests-requests, 90)
		for _, n := range w.held.nodes {
			require.GreaterOrEqual(t, int(n.item.slot.Failures), 2)
			require.LessOrEqual(t, n.at, w.now+hurriedMax)
		}
		return order
	}
	want := order()
	for range 5 {
		require.Equal(t, want, order())
	}
}

// A shutdown makes the requests first that are most likely to pass.
func TestOrderOfAShutdown(t *testing.T) {
	w := newWorld(t)
	for _, n := range []string{"sick", "tried"} {
		w.fail(w.add(n, 1)[0], Response{Result: Failed})
	}
	w.now += time.Hour
	w.Ready(&item{namespace: "sick"}, w.now+time.Hour, w.now)
	w.add("healthy", 5)
	w.Hurry(w.now)
	var order []string
	for _, it := range w.sent() {
		order = append(order, it.namespace)
	}
	assert.Equal(t, []string{"healthy", "healthy", "healthy", "healthy", "healthy", "sick", "tried", "sick"}, order)
}

// What waits is forgotten with its namespace, unless it has something to write.
func TestReleaseInANamespaceThatIsForgotten(t *testing.T) {
	w := newWorld(t)
	it := w.add("a", 1)[0]
	for range deniedOften + 1 {
		w.now += deniedLong
		w.fail(it, Response{Result: Denied})
	}
	w.Wait(it, w.now+time.Hour, w.now)
	for i := range 2 * maxIdle {
		w.Remove(w.add(strconv.Itoa(i), 1)[0])
	}
	w.add("busy", 1)
	w.Remove(w.add("a", 1)[0])
	require.NotContains(t, w.namespaces, "a")
	w.Release(it, w.now)
	w.Ready(it, w.now, w.now)
	assert.Contains(t, w.sent(), it)
}

// A retry is due at most 40 minutes after its back-off.
func TestManyFailures(t *testing.T) {
	w := newWorld(t)
	it := w.add("a", 1)[0]
	for range 100 {
		w.now = max(w.now, it.slot.until)
		w.fail(it, Response{Result: Failed})
	}
	w.now = it.slot.until
	w.Wake(w.now)
	assert.Equal(t, w.now+40*time.Minute, w.namespaces["a"].ready[tried].first())
}

// Push-backs of several namespaces count together until something passes, and not longer.
func TestPushBacksOfSeveralNamespaces(t *testing.T) {
	w := newWorld(t)
	for _, step := range []struct {
		namespace string
		result    Result
		paused    bool
	}{
		{"a", PushedBack, false}, {"c", Passed, false}, {"b", PushedBack, false}, {"a", PushedBack, true},
		{"c", Denied, false}, {"a", PushedBack, true}, {"c", Passed, false}, {"a", PushedBack, false},
	} {
		w.now += time.Hour
		it := w.add(step.namespace, 1)[0]
		require.Equal(t, []*item{it}, w.sent())
		w.done(it, Response{Result: step.result})
		w.Remove(it)
		_, _, paused := w.Pause(w.now)
		require.Equal(t, step.paused, paused, "%+v", step)
	}
}

func TestPendingSince(t *testing.T) {
	w := newWorld(t)
	old := w.add("a", 1)[0]
	w.add("b", 1)
	w.now += time.Minute
	young := w.add("a", 1)[0]
	for before, want := range map[time.Duration][]*item{
		w.now - time.Minute: {old}, w.now: {old, young}, w.now - 2*time.Minute: nil,
	} {
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

// What is remembered about namespaces is bounded.
func TestNamespacesAreForgotten(t *testing.T) {
	w := newWorld(t)
	for i := range 5 * maxIdle {
		it := w.add(strconv.Itoa(i), 1)[0]
		for _, it := range w.sent() {
			w.done(it, Response{Result: Denied})
		}
		w.Remove(it)
		w.now++
	}
	assert.LessOrEqual(t, len(w.namespaces), maxIdle)
	assert.Equal(t, 1, w.namespaces["0"].failures)
}

func TestDueIsNeverEarly(t *testing.T) {
	for _, at := range []time.Duration{0, 1, -1, time.Hour, -time.Hour, math.MinInt64 + 1, math.MaxInt64} {
		w, it := newWorld(t), &item{}
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
	s, items := New[*item](nil), make([]item, n)
	for i := range items {
		s.Ready(&items[i], time.Duration(7*i%n), 0)
	}
	for i := range items {
		s.Remove(&items[i])
		for _, q := range []*Queue[*item]{&s.namespaces[""].ready[fresh], &s.pending} {
			if cap(q.nodes) > max(64, 4*q.Len()+4) {
				require.Fail(t, "too much room", "%d for %d", cap(q.nodes), q.Len())
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	const n = 100_000
	s, items := New[*item](nil), make([]item, n)
	for i := range items {
		s.Wait(&items[i], time.Duration(7*i%n), 0)
	}
	now := time.Duration(n)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now++
		it, _ := s.Due(now)
		s.Ready(it, now, now)
		s.Wake(now)
		s.Backlog()
		it, _ = s.Next(now)
		s.Done(it, Response{Result: Passed}, now)
		s.Wait(it, now+n, now)
	}))
}
