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

// Retries of a namespace are made as early as its interval permits.
func TestIntervals(t *testing.T) {
	outcomes := map[byte]Outcome{'f': Troubled, 'd': Denied, 'r': Refused, 'p': Written}
	for in, wants := range map[string][]time.Duration{ // outcomes, again and again, and the time before each retry
		"f":       append(seconds(0, 0, 0, 1, 2, 4, 8, 16, 32, 64), slices.Repeat(seconds(80), math.MaxUint8)...),
		"dr":      seconds(0, 0, 0, 1, 1, 1, 1),
		"ffffffd": seconds(0, 0, 0, 1, 2, 4, 8, 1, 2, 4),
		"ffffp":   seconds(0, 0, 0, 1, 2, 0, 0, 0, 1, 2, 0),
	} {
		n, now := New[*item](0, 0, nil).namespace(""), time.Duration(0)
		for i, want := range wants {
			require.Equal(t, want, max(now, n.retryAt)-now, "%s: %d", in, i)
			now += want
			n.answer(tried, Answer{Outcome: outcomes[in[i%len(in)]]}, false, now, func(d time.Duration) time.Duration { return d })
		}
	}

	n := New[*item](0, 0, nil).namespace("")
	n.interval, n.retryAt = RetryMax, RetryMax
	n.answer(fresh, Answer{Outcome: Troubled}, false, 0, nil)
	require.Equal(t, RetryMax, n.retryAt)
	n.answer(fresh, Answer{Outcome: Written}, false, 0, nil)
	assert.Equal(t, []time.Duration{RetryFirst, RetryFirst}, []time.Duration{n.interval, n.retryAt})
}

// Nothing is sent in a namespace that is paused, whatever comes back late. Others notice nothing.
func TestPauseOfANamespace(t *testing.T) {
	for _, late := range []Answer{{Outcome: Written}, {Outcome: Troubled}, {Outcome: Denied}, {Outcome: Refused}, {Outcome: PushedBack, Pause: time.Second}} {
		w := newWorld(t, many)
		w.add("a", 3)
		sent, end := w.sent(), w.now+30*time.Second
		w.done(sent[0], Answer{Outcome: PushedBack, Pause: 30 * time.Second})
		w.now += time.Second
		w.done(sent[1], late)
		w.add("a", 1)
		w.add("b", 1)
		assert.Equal(t, []string{"b"}, namespaces(w.sent()))
		w.Release(sent[0], w.now)
		w.Hurry(w.now)
		w.now = end - 1
		w.done(sent[2], late)
		end = max(end, w.now+late.Pause)
		w.now = end - 1
		assert.Empty(t, w.sent(), "%+v", late)
		assert.Equal(t, end-w.now, w.Sick(1, w.now)[0].Pause)
		w.now = end
		assert.NotEmpty(t, w.sent(), "%+v", late)
	}
	w := newWorld(t, 1)
	w.fail(w.add("a", 1)[0], Answer{Outcome: Troubled})
	assert.Negative(t, w.Sick(1, w.now)[0].Pause)
}

// A shutdown makes requests of healthy namespaces first, and those of namespaces in which something takes long last.
func TestOrderOfAShutdown(t *testing.T) {
	w := newWorld(t, many)
	for i, name := range []string{"3 slow", "2 fails", "1 healthy"} {
		w.Ready(&item{namespace: name}, w.now+time.Duration(i+1)*time.Hour, w.now)
	}
	w.Ready(&item{namespace: "2 fails", slot: Slot[*item]{failed: 1, Last: Troubled, until: w.now}}, w.now, w.now)
	w.namespaces["3 slow"].wasSlow = true
	w.namespaces["2 fails"].failures = 1
	w.Hurry(w.now)
	assert.Equal(t, []string{"1 healthy", "2 fails", "2 fails", "3 slow"}, namespaces(w.sent()))
}

// Requests that take long leave their places to others.
func TestPlaces(t *testing.T) {
	w := newWorld(t, 3)
	for i := range 300 {
		w.add(strconv.Itoa(i), 1)
	}
	for range 100 {
		require.Len(t, w.sent(), 3)
		w.now += SlowAfter
	}
	assert.Empty(t, w.sent())
}

// A shutdown has more places.
func TestPlacesOfAShutdown(t *testing.T) {
	w := newWorld(t, 2)
	w.add("a", 2*MaxPlaces)
	require.Len(t, w.sent(), 2)
	w.Hurry(w.now)
	assert.Len(t, w.sent(), MaxPlaces-2)
}
