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
	request, isRequest := s.NextRequest(now, false)
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

func (w *world) done(it *item, result Result) { w.Done(it, it.pass, result, 0, w.now) }

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

func TestGatesBackOff(t *testing.T) {
	for name, tt := range map[string]struct {
		result Result
		want   []time.Duration
	}{
		"server":           {PushedBack, seconds(5, 10, 20, 40, 80, 160, 300, 300)},
		"namespace":        {Failed, seconds(1, 2, 4, 8, 16, 32, 64, 120, 120)},
		"denied namespace": {Denied, seconds(1, 2, 4, 8, 16, 32, 64, 120, 120)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			items := w.add("a", 3)
			if tt.result == Failed {
				it, _ := w.Next(w.now)
				w.fail(it, Failed) // the first failure closes nothing
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
			}
			assert.Equal(t, tt.want[0], w.sleep(), "a success resets the back-off")
		})
	}
}

// A network that loses single requests closes no gate.
func TestSingleFailuresCloseNoGate(t *testing.T) {
	w := newWorld(t)
	w.add("a", 100)
	w.add("b", 100)
	for range 200 {
		it, ok := w.Next(w.now)
		require.True(t, ok)
		w.done(it, Failed)
		w.Ready(it, w.now, true, w.now)
		it, ok = w.Next(w.now)
		require.True(t, ok)
		w.done(it, Passed)
	}
	assert.Empty(t, w.suspects)

	// What is remembered about gates is bounded.
	for i := range 3 * maxSuspects {
		w.add(strconv.Itoa(i), 1)
		w.done(w.send()[0], Failed)
		require.LessOrEqual(t, len(w.suspects), maxSuspects)
	}
	assert.Empty(t, w.gates)
}

func TestBackoffOfItems(t *testing.T) {
	double := func(d time.Duration) time.Duration { return 2 * d }
	s := NewSchedule[*item](double)
	for failures, want := range seconds(2, 2, 4, 8, 16, 32, 64, 128, 240, 240) {
		assert.Equal(t, want, s.Backoff(failures), failures)
	}
	s.Hurry(0)
	assert.Equal(t, 100*time.Millisecond, s.Backoff(1000))
	assert.Equal(t, 2*time.Second, NewSchedule[*item](nil).Backoff(2))

	// Jitter applies to pauses, but not to what the server asks for.
	p, _ := s.Admit(0)
	s.Return(p, PushedBack, 0, 0)
	until, _, _ := s.Pause(0)
	assert.Equal(t, 10*time.Second, until)
	p, ok := s.Admit(until)
	require.True(t, ok)
	s.Return(p, PushedBack, time.Minute, until)
	until, _, _ = s.Pause(0)
	assert.Equal(t, 70*time.Second, until)
}

// A poison item closes the gate each time, but the others of its namespace follow
// a second later.
func TestPoisonItemDoesNotHoldUpItsNamespace(t *testing.T) {
	w := newWorld(t)
	poison := w.add("a", 1)[0]
	failures := 0
	begin := w.now
	for range 50 {
		item := w.add("a", 1)[0]
		ready := w.now
		for handled := false; !handled; {
			w.advance()
			for _, it := range w.send() {
				if it != poison {
					w.done(it, Passed)
					handled = true
					continue
				}
				w.done(it, Failed)
				failures++
				w.Retry(it, w.now+w.Backoff(failures), w.now)
			}
			if !handled {
				w.sleep()
			}
		}
		require.LessOrEqual(t, w.now-ready, 2*time.Second)
		w.Remove(item)
		w.now += 20 * time.Second
	}
	assert.LessOrEqual(t, failures, 8+int((w.now-begin)/(2*time.Minute)))
}

// With one item in the namespace, nothing is parked when the gate may be probed.
func TestDeniedItemsExpire(t *testing.T) {
	const ttl = time.Hour
	for _, n := range []int{1, 3} {
		w := newWorld(t)
		w.add("a", n)
		begin := w.now
		for expired := 0; expired < n; {
			require.Less(t, w.now-begin, ttl+10*time.Minute)
			for _, it := range w.send() {
				w.done(it, Denied)
				w.Retry(it, w.now+w.Backoff(1), w.now)
				for _, it := range w.Expired(it.key, false, ttl, w.now) {
					require.GreaterOrEqual(t, w.now-begin, ttl)
					w.Remove(it)
					expired++
				}
			}
			w.sleep()
		}
		_, pending, _ := w.Backlog()
		assert.Zero(t, pending)
		assert.Equal(t, gateKept, w.sleep())
		w.send()
		assert.Empty(t, w.gates, "the gate is forgotten")
	}
}

// More items than become ready at once follow when a gate opens, in their order.
func TestGateDrainsInBatches(t *testing.T) {
	w := newWorld(t)
	items := w.add("a", 3*unparkBatch)
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
