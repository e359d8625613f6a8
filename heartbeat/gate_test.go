package heartbeat

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// world is a Schedule with a clock and named items.
type world struct {
	*Schedule[*item]
	t   *testing.T
	now time.Duration
}

func newWorld(t *testing.T) *world {
	return &world{Schedule: NewSchedule[*item](nil), t: t, now: time.Hour}
}

// wakeOf returns the next time at which Due or Next has a result if nothing else
// happens before.
func wakeOf(s *Schedule[*item], now time.Duration) (at time.Duration, ok bool) {
	due, isDue := s.NextDue()
	request, isRequest := s.NextRequest(now)
	if isDue && (!isRequest || due < request) {
		return due, true
	}
	return request, isRequest
}

// add makes items of a namespace ready, the first first.
func (w *world) add(namespace string, n int) (items []*item) {
	for range n {
		it := &item{key: Gate{namespace, "create"}}
		w.Ready(it, w.now+time.Duration(w.ready.Len()), false, w.now)
		items = append(items, it)
	}
	return items
}

// Next is Schedule.Next. The item keeps the pass.
func (w *world) Next(now time.Duration) (it *item, ok bool) {
	it, p, ok := w.Schedule.Next(now)
	if ok {
		it.pass = p
	}
	return it, ok
}

// send puts all items in flight that can be.
func (w *world) send() (sent []*item) {
	for {
		it, ok := w.Next(w.now)
		if !ok {
			return sent
		}
		sent = append(sent, it)
	}
}

func (w *world) done(it *item, result Result) {
	w.Done(it, it.pass, result, 0, w.now)
	it.tried = result == Failed || result == Denied || it.tried && result != Passed
}

// fail has a request for it fail, and makes the item ready again.
func (w *world) fail(it *item, result Result) {
	w.done(it, result)
	w.Ready(it, w.now, false, w.now)
}

// sleep advances the clock to the next wake-up, and returns for how long. Nothing
// can be sent before. Items that are due then become ready.
func (w *world) sleep() time.Duration {
	w.t.Helper()
	require.Empty(w.t, w.send())
	at, ok := wakeOf(w.Schedule, w.now)
	require.True(w.t, ok)
	slept := at - w.now
	w.now = at
	w.advance()
	return slept
}

// advance makes all items ready that are due.
func (w *world) advance() {
	for it, ok := w.Due(w.now); ok; it, ok = w.Due(w.now) {
		w.Ready(it, w.now, false, w.now)
	}
}

func seconds(n ...int) (ds []time.Duration) {
	for _, n := range n {
		ds = append(ds, time.Duration(n)*time.Second)
	}
	return ds
}

// open has a request pass the gate of each namespace.
func (w *world) open(namespaces ...string) {
	for _, namespace := range namespaces {
		w.add(namespace, 1)
		for _, it := range w.send() {
			w.done(it, Passed)
		}
	}
}

// Items that the gate has failed wait for its delay, which doubles. Those that it has denied
// wait for their own.
func TestGatesBackOff(t *testing.T) {
	for name, tt := range map[string]struct {
		result Result
		want   []time.Duration
	}{
		"pushed back": {PushedBack, seconds(5, 10, 20, 40, 40)},
		"failed":      {Failed, seconds(1, 2, 4, 8, 16, 32, 64, 120, 120)},
		"denied":      {Denied, slices.Repeat([]time.Duration{retryFirst}, 9)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			items := w.add("a", 3)
			for _, it := range items {
				it.tried = tt.result != PushedBack
			}
			for _, want := range tt.want {
				it, ok := w.Next(w.now)
				require.True(t, ok)
				w.fail(it, tt.result)
				assert.Equal(t, want, w.sleep())
			}
			probe, _ := w.Next(w.now)
			assert.Empty(t, w.send(), "one probe at a time")
			w.done(probe, Passed)
			sent := w.send()
			assert.Len(t, sent, len(items)-1, "the others follow the probe")
			for _, it := range sent {
				w.fail(it, tt.result)
				it.tried = tt.result != PushedBack
			}
			assert.Equal(t, tt.want[0], w.sleep(), "a success resets the back-off")
		})
	}
}

// A push-back concerns its namespace, until the server asks for a pause, or pushes back in
// several namespaces.
func TestPauseOfTheServer(t *testing.T) {
	for name, tt := range map[string]struct {
		namespaces []string
		retryAfter time.Duration
		want       []time.Duration // the pauses; none if nil
	}{
		"one namespace":      {[]string{"a", "a", "a", "a"}, 0, nil},
		"several namespaces": {[]string{"a", "b", "b", "a", "b", "a"}, 0, seconds(5, 10, 20, 40, 40)},
		"one asks":           {[]string{"a", "a", "a", "a", "a", "a", "a"}, time.Second, seconds(5, 10, 20, 40, 80, 160, 300)},
		"for more":           {[]string{"a", "a"}, time.Minute, seconds(60, 60)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.open("a", "b", "c")
			var pauses []time.Duration
			for _, namespace := range tt.namespaces {
				it := &item{key: Gate{namespace, "create"}}
				g := w.gates[it.key]
				if g != nil {
					w.now = max(w.now, g.pushed)
				}
				w.Ready(it, w.now, false, w.now)
				sent, ok := w.Next(w.now)
				require.True(t, ok)
				w.Done(sent, sent.pass, PushedBack, tt.retryAfter, w.now)
				w.Remove(sent)
				if until, _, paused := w.Pause(w.now); paused {
					pauses = append(pauses, until-w.now)
					w.add("c", 1)
					require.Empty(t, w.send(), "no namespace may send")
					w.now = until
					for _, n := range w.ready.soft.nodes {
						w.Remove(n.item)
					}
				}
			}
			assert.Equal(t, tt.want, pauses)
			w.add("c", 1)
			for _, it := range w.send() {
				w.done(it, Passed)
			}
			_, _, paused := w.Pause(w.now)
			assert.False(t, paused)
		})
	}
}

// A network that loses single requests closes no gate.
func TestSingleFailuresCloseNoGate(t *testing.T) {
	w := newWorld(t)
	w.open("a", "b")
	w.add("a", 100)
	w.add("b", 100)
	for range 200 {
		it, ok := w.Next(w.now)
		require.True(t, ok)
		w.fail(it, Failed)
		it, ok = w.Next(w.now)
		require.True(t, ok)
		w.done(it, Passed)
	}
	assert.Empty(t, w.gates)

	// What is remembered about gates is bounded.
	for i := range maxKnown + 10 {
		w.open(strconv.Itoa(i))
		require.LessOrEqual(t, len(w.known), maxKnown)
	}
	assert.Empty(t, w.gates)
}

func TestBackoffOfItems(t *testing.T) {
	double := func(d time.Duration) time.Duration { return 2 * d }
	s := NewSchedule[*item](double)
	for failures, want := range seconds(2, 2, 4, 8, 16, 32, 64, 128, 240, 240) {
		assert.Equal(t, want, s.Backoff(failures), failures)
	}
	assert.Equal(t, 10*time.Minute, s.BackoffDenied(DeniedOften))
	assert.Equal(t, 80*time.Minute, s.BackoffDenied(DeniedOften+1))
	s.Hurry(0)
	assert.Equal(t, 100*time.Millisecond, s.Backoff(1000))
	assert.Equal(t, 100*time.Millisecond, s.BackoffDenied(1000))
	assert.Equal(t, 2*time.Second, NewSchedule[*item](nil).Backoff(2))

	// Jitter applies to pauses, but not to what the server asks for.
	s = NewSchedule[*item](double)
	it := &item{}
	for now, want := time.Duration(0), seconds(10, 60); len(want) > 0; want = want[1:] {
		s.Ready(it, now, false, now)
		_, p, ok := s.Next(now)
		require.True(t, ok)
		s.Done(it, p, PushedBack, max(time.Second, want[0]-10*time.Second), now)
		until, _, _ := s.Pause(now)
		assert.Equal(t, max(10*time.Second, want[0]-10*time.Second), until-now)
		now = until
		want[0] = 0
	}
}

// The server denies some objects of a namespace, and nothing else passes the gate for
// hours. An item of another object probes at once.
func TestDeniedItemsHoldUpNoOther(t *testing.T) {
	for _, denied := range []int{1, 5, 30, 100} {
		for _, result := range []Result{Failed, Denied} {
			w := newWorld(t)
			bad := map[*item]int{}
			for _, it := range w.add("a", denied) {
				bad[it] = 0
			}
			requests := 0
			work := func(until time.Duration) (passed *item) {
				for {
					w.advance()
					for _, it := range w.send() {
						if _, ok := bad[it]; !ok {
							w.done(it, Passed)
							return it
						}
						requests++
						bad[it]++
						w.done(it, result)
						w.Retry(it, w.now+w.BackoffDenied(bad[it]), w.now)
					}
					at, ok := wakeOf(w.Schedule, w.now)
					if !ok || at > until {
						w.now = until
						return nil
					}
					w.now = at
				}
			}
			for hour := range 3 {
				begin := w.now
				require.Nil(t, work(begin+time.Hour))
				assert.LessOrEqual(t, requests, 60*denied)
				requests = 0
				good := w.add("a", 1)[0]
				emitted := w.now
				require.Same(t, good, work(w.now+time.Minute), "%d denied, hour %d", denied, hour)
				assert.Less(t, w.now-emitted, 5*time.Second)
			}
		}
	}
}

// Items that are due at the same time have no order, and those that the server denies can be
// all in a row: at any place, also at both ends, and however they were added.
func TestProbesFindWhatIsPermitted(t *testing.T) {
	const all, denied = 130, 40
	for first := range all {
		for _, parksEach := range []bool{false, true} {
			w := newWorld(t)
			isDenied := map[*item]bool{}
			var sent []*item
			for i := range all {
				it := &item{key: Gate{"ns", "create"}}
				isDenied[it] = (i-first+all)%all < denied
				w.Ready(it, w.now, false, w.now)
				if parksEach {
					sent = append(sent, w.send()...)
				}
			}
			probes := 1
			for sent = append(sent, w.send()...); isDenied[sent[0]]; probes++ {
				w.fail(sent[0], Denied)
				sent = w.send()
			}
			assert.LessOrEqual(t, probes, quick, "from %d, parks each: %t", first, parksEach)
		}
	}
}

// Items that have not failed probe while the gate fails others: the first at once, and then
// one for each delay, but those that arrive later within seconds. In an outage, all
// namespaces together have one of these.
func TestNewcomersProbe(t *testing.T) {
	const namespaces = 20
	w := newWorld(t)
	for i := range namespaces {
		w.open(strconv.Itoa(i))
	}
	sent := 0
	fail := func(until time.Duration) {
		sent = 0
		for {
			w.advance()
			for it, ok := w.Next(w.now); ok; it, ok = w.Next(w.now) {
				sent++
				w.done(it, Failed)
				w.Retry(it, w.now+time.Hour, w.now)
			}
			at, ok := wakeOf(w.Schedule, w.now)
			if !ok || at > until {
				w.now = until
				return
			}
			w.now = at
		}
	}
	w.add("0", 500)
	fail(w.now + time.Minute)
	assert.LessOrEqual(t, sent, quick+8)
	w.now += 10 * time.Second
	w.add("0", 1)
	fail(w.now)
	assert.Equal(t, 1, sent, "a newcomer probes")

	for i := range namespaces {
		w.add(strconv.Itoa(i), 100)
	}
	fail(w.now + time.Minute)
	for range 60 {
		for i := range namespaces {
			w.add(strconv.Itoa(i), 1)
		}
		before := w.now
		fail(w.now + time.Minute)
		require.LessOrEqual(t, sent, namespaces/2+1+int((w.now-before)/newcomerAfter))
	}
}

// A request that takes long holds up its namespace and no other. Probes of gates that hang
// take a bounded number of places.
func TestSlowRequests(t *testing.T) {
	w := newWorld(t)
	w.open("a", "b")
	items := w.add("a", 5)
	slow, _ := w.Next(w.now)
	for range 2 {
		w.Slow(&slow.pass, w.now)
		assert.Empty(t, w.send())
	}
	w.add("b", 1)
	require.Len(t, w.send(), 1)
	assert.Equal(t, slowAfter, w.sleep())
	second := w.send()
	require.Len(t, second, 1)
	w.Slow(&second[0].pass, w.now)
	assert.Empty(t, w.send())
	_, ok := wakeOf(w.Schedule, w.now)
	assert.False(t, ok, "two hang")
	w.done(slow, Failed)
	w.now += time.Minute
	third := w.send()
	require.Len(t, third, 1)
	w.done(third[0], Passed)
	assert.Len(t, w.send(), len(items)-3)
	w.done(second[0], Failed)
	assert.Empty(t, w.gates, "one failure")

	w = newWorld(t)
	for range 3 {
		for i := range 2 * maxProbes {
			w.add(strconv.Itoa(i), 1)
		}
		for _, it := range w.send() {
			w.Slow(&it.pass, w.now)
			w.done(it, Failed)
			w.Retry(it, w.now, w.now)
		}
		w.now += 10 * time.Minute
		w.advance()
	}
	hanging := w.send()
	assert.Len(t, hanging, maxProbes)
	w.add("healthy", 1)
	assert.Len(t, w.send(), 1)
	for _, it := range hanging {
		w.Slow(&it.pass, w.now)
		w.done(it, Failed)
	}
	w.now += time.Second
	assert.Len(t, w.send(), maxProbes)
}

// While an item that has failed hangs, others that have failed wait, and one that arrives
// does not, although it is their turn.
func TestNewcomersProbeBesideOneThatHangs(t *testing.T) {
	w := newWorld(t)
	w.open("a")
	w.add("a", 3)
	for _, it := range w.send() {
		w.fail(it, Failed)
	}
	for range 4 * quick {
		w.sleep()
		w.fail(w.send()[0], Failed)
	}
	for range 4 {
		w.sleep()
		hanging := w.send()
		require.Len(t, hanging, 1)
		w.Slow(&hanging[0].pass, w.now)
		require.Empty(t, w.send())
		_, ok := wakeOf(w.Schedule, w.now)
		require.False(t, ok, "the others have failed")

		w.now += time.Minute
		left := w.add("a", 1)[0]
		require.Equal(t, []*item{left}, w.send())
		w.fail(left, Failed)
		w.Remove(left)
		newcomer := w.add("a", 2)[0]
		w.Remove(newcomer)
		assert.LessOrEqual(t, w.sleep(), slowAfter+newcomerAfter)
		sent := w.send()
		require.Len(t, sent, 1)
		assert.False(t, sent[0].tried)
		w.fail(sent[0], Failed)
		w.Remove(sent[0])
		w.fail(hanging[0], Failed)
	}
}

// Probes take half of the requests at most while others are ready.
func TestProbesHoldUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.open("good")
	w.add("bad", 2*quick)
	w.add("good", 2*quick)
	good := 0
	for i := range 2 * quick {
		it, ok := w.Next(w.now)
		require.True(t, ok)
		if it.key.Namespace == "good" {
			good++
			w.done(it, Passed)
		} else {
			w.done(it, Denied)
		}
		require.GreaterOrEqual(t, good, (i-1)/2)
	}
}

// A gate that nobody asks to pass is forgotten.
func TestGatesAreForgotten(t *testing.T) {
	w := newWorld(t)
	it := w.add("a", 1)[0]
	w.send()
	w.done(it, Denied)
	w.Remove(it)
	assert.Equal(t, 1, w.Failures(it.key))
	assert.Equal(t, gateKept+time.Second, w.sleep())
	w.send()
	assert.Empty(t, w.gates)
}

func TestPendingSince(t *testing.T) {
	w := newWorld(t)
	old := w.add("a", 1)[0]
	w.add("b", 1)
	w.now += time.Minute
	young := w.add("a", 1)[0]
	assert.Equal(t, []*item{old}, w.PendingSince(old.key, w.now-time.Minute))
	assert.ElementsMatch(t, []*item{old, young}, w.PendingSince(old.key, w.now))
	assert.Empty(t, w.PendingSince(old.key, w.now-2*time.Minute))
	w.send()
	assert.Equal(t, []*item{young}, w.PendingSince(old.key, w.now), "one is in flight")
}

// More items than become ready at once follow when a gate opens, in their order.
func TestGateDrainsInBatches(t *testing.T) {
	w := newWorld(t)
	items := w.add("a", 3*unparkBatch)
	for _, it := range items {
		it.tried = true
	}
	first, _ := w.Next(w.now)
	w.fail(first, Denied)
	require.Empty(t, w.send())
	ready, _, _ := w.Backlog()
	assert.Zero(t, ready)
	w.sleep()
	probe := w.send()[0]
	w.done(probe, Passed)
	ready, _, _ = w.Backlog()
	assert.Equal(t, len(items)-1, ready)
	wake, _ := wakeOf(w.Schedule, w.now)
	assert.Equal(t, w.now, wake)
	removed := items[10]
	w.Remove(removed)
	rest := slices.DeleteFunc(slices.Clone(items), func(it *item) bool { return it == removed || it == probe })
	assert.Equal(t, rest, w.send())
	assert.False(t, w.drains())
}

// The same calls have the same results, also in a shutdown in an outage.
func TestHurryProbesInOneOrder(t *testing.T) {
	order := func() (probed []string) {
		w := newWorld(t)
		for n := range 20 {
			w.add(strconv.Itoa(n), 1)
		}
		for _, it := range w.send() {
			w.fail(it, Failed)
		}
		w.Hurry(w.now)
		for _, it := range w.send() {
			probed = append(probed, it.key.Namespace)
		}
		return probed
	}
	want := order()
	require.Len(t, want, 20)
	for range 10 {
		require.Equal(t, want, order())
	}
}
