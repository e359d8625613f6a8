package schedule

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Retries are made as early as the throttle permits.
func TestThrottle(t *testing.T) {
	results := map[byte]Result{'f': Failed, 'd': Denied, 'r': Refused, 'p': Passed, '-': None}
	for in, wants := range map[string][]time.Duration{ // results, again and again, and the time before each retry
		"f":       seconds(0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60),
		"dr":      seconds(0, 0, 0, 1, 1, 1, 1),
		"ffffffd": seconds(0, 0, 0, 1, 2, 4, 8, 1, 2, 4),
		"ffffp":   seconds(0, 0, 0, 1, 2, 0, 0, 0, 1, 2, 0),
		"ffff-":   seconds(0, 0, 0, 1, 2, 4, 8),
	} {
		th, now := throttle{free: freeRetries}, time.Duration(0)
		for i, want := range wants {
			require.Equal(t, want, max(now, th.at())-now, "%s: %d", in, i)
			now += want
			th.take(now, retryMaxOfAll, func(d time.Duration) time.Duration { return d })
			th.answer(results[in[i%len(in)]], now)
		}
	}
}

// Nothing is sent in a namespace that is paused, whatever comes back late. Others notice nothing.
func TestPauseOfANamespace(t *testing.T) {
	for _, late := range []Response{{}, {Result: Passed}, {Result: Failed}, {Result: Denied}, {Result: Refused}, {Result: PushedBack, RetryAfter: time.Second}} {
		w := newWorld(t, many)
		w.add("a", 3)
		sent, end := w.sent(), w.now+30*time.Second
		w.done(sent[0], Response{Result: PushedBack, RetryAfter: 30 * time.Second})
		w.now += time.Second
		w.done(sent[1], late)
		w.add("a", 1)
		w.add("b", 1)
		assert.Equal(t, []string{"b"}, namespaces(w.sent()))
		w.Release(sent[0], w.now)
		w.Hurry(w.now)
		w.now = end - 1
		w.done(sent[2], late)
		end = max(end, w.now+late.RetryAfter)
		w.now = end - 1
		assert.Empty(t, w.sent(), "%+v", late)
		assert.Equal(t, end, w.Sick(1, w.now)[0].Until)
		w.now = end
		assert.NotEmpty(t, w.sent(), "%+v", late)
	}
}

// Pauses of namespaces that overlap count once.
func TestPause(t *testing.T) {
	w := newWorld(t, many)
	for i, tt := range []struct{ wait, pause, until, total int }{{0, 10, 10, 0}, {4, 10, 10, 4}, {4, 1, 6, 8}, {6, 0, 0, 14}, {9, 2, 2, 14}, {1, 5, 5, 15}, {9, 0, -4, 20}} {
		w.now += time.Duration(tt.wait) * time.Second
		w.add(strconv.Itoa(i), 1)
		w.Done(w.sent()[0], Response{Result: PushedBack, RetryAfter: time.Duration(tt.pause) * time.Second}, w.now)
		until, total, ok := w.Pause(w.now)
		assert.Equal(t, tt.until > 0, ok, i)
		assert.Equal(t, seconds(tt.until, tt.total), []time.Duration{until - w.now, total}, i)
	}
}

// retry adds an item that has failed and can be tried again, of a namespace that has, too.
func (w *world) retry(namespace string, since time.Duration, retries uint8) *item {
	it := &item{namespace: namespace, slot: Slot[*item]{Failures: 1, Alike: 1, Last: Failed, until: w.now}}
	w.Ready(it, w.now, w.now)
	n := w.namespaces[namespace]
	n.failures, n.since, n.throttle.failures = 1, since, retries
	w.plan(n)
	w.now++
	return it
}

// Retries that fail in many namespaces wait for those of all.
func TestRetriesOfAll(t *testing.T) {
	w := newWorld(t, many)
	for _, name := range names("old-", 3) {
		w.retry(name, w.now-time.Hour, 1)
	}
	for i, result := range []Result{Failed, Passed} { // a healthy namespace begins to fail, or a new item passes
		w.throttle.failures, w.throttle.taken, w.throttle.next = freeRetriesOfAll, w.now, w.now+time.Minute
		w.add(strconv.Itoa(i), 1)
		sent := w.sent()
		require.Equal(t, []string{strconv.Itoa(i)}, namespaces(sent))
		w.done(sent[0], Response{Result: result})
		assert.Equal(t, w.now+retryFirst, w.throttle.at())
		w.Remove(sent[0])
		w.now += retryFirst
		require.Len(t, w.sent(), 1)
	}
	w.done(w.flights.First(), Response{Result: Passed})
	assert.Len(t, w.sent(), 1, "a retry passes")
}

// The first retry of a namespace does not wait for those of all, nor behind one that does.
func TestFirstRetryOfANamespace(t *testing.T) {
	for _, failures := range []int{0, 1} {
		w := newWorld(t, many)
		w.retry("old", w.now, 1)
		w.retry("first", w.now, 0)
		w.throttle.failures, w.throttle.next = freeRetriesOfAll, w.now+time.Minute
		for _, n := range w.namespaces {
			n.failures = failures
			w.plan(n)
		}
		assert.Equal(t, []string{"first"}, namespaces(w.sent()), "failures: %d", failures)
	}
}

// Retries are made in the order of their ranks, and in a shutdown all requests.
func TestRanks(t *testing.T) {
	want := []string{"3 healthy", "4 lately", "5 old", "6 hangs", "0 healthy", "1 fails", "2 hangs"} // new ones are due later
	for _, hurried := range []bool{false, true} {
		w := newWorld(t, many)
		for _, name := range []string{"6 hangs", "5 old", "4 lately", "3 healthy"} {
			w.retry(name, w.now, 1)
		}
		w.namespaces["4 lately"].since += time.Minute
		w.now += lately + time.Second
		for i, name := range []string{"0 healthy", "1 fails", "2 hangs"} {
			w.Ready(&item{namespace: name}, w.now+time.Duration(i+1)*time.Hour, w.now)
		}
		for name, n := range w.namespaces {
			n.hung, n.failures = strings.HasSuffix(name, "hangs"), 1
			if strings.HasSuffix(name, "healthy") {
				n.failures = 0
			}
			w.plan(n)
		}
		if hurried {
			w.Hurry(w.now)
			slices.Sort(want)
		}
		assert.Equal(t, want, namespaces(w.sent()))
	}
}

// After 1, 2, 4, 8 minutes, one more request that hangs leaves its place in its namespace.
func TestHangs(t *testing.T) {
	w := newWorld(t, many)
	w.add("a", 10)
	w.namespaces["a"].failures = 1
	begin := w.now
	require.Len(t, w.sent(), 2)
	var hang []time.Duration
	for len(hang) < 5 {
		_, w.now = w.Wake(w.now)
		for range w.sent() {
			hang = append(hang, w.now-begin-SlowAfter)
		}
	}
	assert.Equal(t, seconds(60, 120, 240, 480, 960), hang)
}

// Requests that take long leave their places to others, up to MaxSlow, and those that hang do.
func TestPlaces(t *testing.T) {
	w := newWorld(t, 3)
	for i := range 300 {
		w.add(strconv.Itoa(i), 1)
	}
	for range MaxSlow/3 + 1 {
		require.Len(t, w.sent(), 3)
		w.now += SlowAfter
	}
	assert.Len(t, w.sent(), 1, "%d are slow, and two have places", MaxSlow)
	w.now += hangsAfter
	assert.Len(t, w.sent(), 3)
}

// In a shutdown, each request that the server handles makes place for one more.
func TestPlacesOfAShutdown(t *testing.T) {
	for want, results := range map[int][]Result{
		5: {Passed, Denied, Refused}, 3: {Passed, None, Failed}, 2: {Passed, Passed, PushedBack}, hurriedPlaces: slices.Repeat([]Result{Passed}, 40),
	} {
		w := newWorld(t, 2)
		w.Hurry(w.now)
		for i, result := range results {
			it := w.add(strconv.Itoa(i), 1)[0]
			require.Equal(t, []*item{it}, w.sent())
			w.Done(it, Response{Result: result}, w.now)
			w.Remove(it)
		}
		w.add("a", 2*hurriedPlaces)
		assert.Len(t, w.sent(), want)
	}
}
