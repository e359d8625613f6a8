package schedule

import (
	"math"
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
		"f":       append(seconds(0, 0, 0, 1, 2, 4, 8, 16, 32, 64), slices.Repeat(seconds(80), math.MaxUint8)...),
		"dr":      seconds(0, 0, 0, 1, 1, 1, 1),
		"ffffffd": seconds(0, 0, 0, 1, 2, 4, 8, 1, 2, 4),
		"ffffp":   seconds(0, 0, 0, 1, 2, 0, 0, 0, 1, 2, 0),
		"ffff-":   seconds(0, 0, 0, 1, 2, 4, 8),
	} {
		th, now := throttle{free: FreeRetries, first: RetryFirst}, time.Duration(0)
		for i, want := range wants {
			require.Equal(t, want, max(now, th.at())-now, "%s: %d", in, i)
			now += want
			th.take(now, RetryMax, func(d time.Duration) time.Duration { return d })
			th.answer(tried, results[in[i%len(in)]], now)
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
		assert.Equal(t, end-w.now, w.Sick(1, w.now)[0].Pause)
		w.now = end
		assert.NotEmpty(t, w.sent(), "%+v", late)
	}
	w := newWorld(t, 1)
	w.fail(w.add("a", 1)[0], Response{Result: Failed})
	assert.Negative(t, w.Sick(1, w.now)[0].Pause)
}

// retry adds an item that has failed and can be tried again, of a namespace that has, too.
func (w *world) retry(namespace string, since time.Duration, retries uint8) {
	it := &item{namespace: namespace, slot: Slot[*item]{Failures: 1, Alike: 1, Last: Failed, until: w.now}}
	w.Ready(it, w.now, w.now)
	n := w.namespaces[namespace]
	n.failures, n.since, n.throttle.failures = 1, since, retries
	n.classify(w.now)
	w.plan(n)
	w.now++
}

// exhaust makes the retries of all of a class wait for a minute.
func (w *world) exhaust(class int) {
	w.throttles[class].failures, w.throttles[class].next = Burst, w.now+time.Minute
}

// Retries that fail in many namespaces wait for those of all that have failed for as long, until
// one passes. A new item that passes brings back the first interval.
func TestRetriesOfAll(t *testing.T) {
	for class, since := range map[int]time.Duration{recent: 0, classes - 1: -100 * time.Hour} {
		w := newWorld(t, many)
		for _, name := range names("", 3) {
			w.retry(name, w.now+since, 1)
		}
		w.exhaust(class)
		w.add("new", 1)
		sent := w.sent()
		require.Equal(t, []string{"new"}, namespaces(sent))
		w.done(sent[0], Response{Result: Passed})
		assert.Equal(t, w.now+RetryFirst, w.throttles[class].at())
		w.now += RetryFirst
		sent = w.sent()
		require.Len(t, sent, 1)
		w.done(sent[0], Response{Result: Passed})
		assert.Len(t, w.sent(), 2)
	}
}

// The first retry of a namespace waits for no other one, and old failures for recent ones neither.
func TestRetriesWaitForThoseOfTheirClass(t *testing.T) {
	w := newWorld(t, many)
	w.retry("recent", w.now, 1)
	w.retry("old", w.now-100*time.Hour, 1)
	w.retry("first", w.now-time.Hour, 0)
	w.exhaust(recent)
	w.exhaust(classes - 1)
	assert.Equal(t, []string{"first"}, namespaces(w.sent()))
	w.throttles[recent].next = w.now
	assert.Equal(t, []string{"recent"}, namespaces(w.sent()))
	w.throttles[classes-1].next = w.now
	assert.Equal(t, []string{"old"}, namespaces(w.sent()))
}

// A shutdown makes requests in the order of classes, and those of namespaces that hang last.
func TestClasses(t *testing.T) {
	w := newWorld(t, many)
	for _, name := range []string{"6 hangs", "4 old", "3 recent", "2 first"} {
		w.retry(name, w.now, 1)
	}
	w.namespaces["2 first"].throttle.failures = 0
	w.now += recentAge
	w.namespaces["3 recent"].since = w.now
	for i, name := range []string{"5 hangs", "1 fails", "0 healthy"} {
		w.Ready(&item{namespace: name}, w.now+time.Duration(i+1)*time.Hour, w.now)
	}
	for name, n := range w.namespaces {
		n.hung, n.failures = strings.HasSuffix(name, "hangs"), 1-strings.Count(name, "healthy")
		n.classify(w.now)
		w.plan(n)
	}
	w.Hurry(w.now)
	sent := namespaces(w.sent())
	assert.Len(t, sent, 7)
	assert.True(t, slices.IsSorted(sent), sent)
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

// What waits in a namespace in which a request hangs is due later. In a shutdown it goes last.
func TestOrderBesideHangs(t *testing.T) {
	for late, hurried := range map[time.Duration]bool{later / 2: false, 2 * later: true} {
		w := newWorld(t, 1)
		w.add("hangs", 2)
		require.Len(t, w.sent(), 1)
		w.now += SlowAfter + HangsAfter
		w.Wake(w.now)
		w.Ready(&item{namespace: "healthy"}, w.now+late, w.now)
		if hurried {
			w.Hurry(w.now)
		}
		assert.Equal(t, []string{"healthy"}, namespaces(w.sent()), late)
	}
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
	w.now += HangsAfter
	assert.Len(t, w.sent(), 3)
}

// In a shutdown, each request that the server handles makes place for one more.
func TestPlacesOfAShutdown(t *testing.T) {
	for want, results := range map[int][]Result{
		5: {Passed, Denied, Refused}, 3: {Passed, None, Failed}, 2: {Passed, Passed, PushedBack}, MaxPlaces: slices.Repeat([]Result{Passed}, 40),
	} {
		w := newWorld(t, 2)
		w.Hurry(w.now)
		for i, result := range results {
			it := w.add(strconv.Itoa(i), 1)[0]
			require.Equal(t, []*item{it}, w.sent())
			w.Done(it, Response{Result: result}, w.now)
			w.Remove(it)
		}
		w.add("a", 2*MaxPlaces)
		assert.Len(t, w.sent(), want)
	}
}
