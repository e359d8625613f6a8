package heartbeat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lanesOf returns H for each item that is in hard, and s for each other one.
func lanesOf(items, hard []*item) (s string) {
	isHard := map[*item]bool{}
	for _, it := range hard {
		isHard[it] = true
	}
	for _, it := range items {
		s += map[bool]string{true: "H", false: "s"}[isHard[it]]
	}
	return s
}

// addHard makes items of a namespace ready that have a hard deadline, now.
func (w *world) addHard(namespace string, n int) (items []*item) {
	for range n {
		it := &item{key: Gate{namespace, "create"}}
		w.Ready(it, w.now, true, w.now)
		items = append(items, it)
	}
	return items
}

// Items whose hard deadline has passed go first, but of four requests in a row, one goes to
// another item.
func TestHardDeadlinesGoFirst(t *testing.T) {
	w := newWorld(t)
	w.open("a")
	w.Ready(&item{key: Gate{"a", "create"}}, w.now-time.Minute, false, w.now)
	w.add("a", 4)
	hard := w.addHard("a", 10)
	assert.Equal(t, "HHHsHHHsHHHsHss", lanesOf(w.send(), hard))
}

// An item that a gate has held up keeps its hard deadline.
func TestGatesKeepHardDeadlines(t *testing.T) {
	w := newWorld(t)
	w.Ready(&item{key: Gate{"a", "create"}}, w.now-time.Minute, false, w.now)
	hard := w.addHard("a", 3)
	probe := w.send()
	require.Len(t, probe, 1)
	w.add("a", 2)
	require.Empty(t, w.send())
	w.done(probe[0], Passed)
	sent := lanesOf(append(probe, w.send()...), hard)
	assert.Equal(t, "HHHsss", sent)

	// The gate of an item can change while another one holds it up.
	w = newWorld(t)
	w.add("a", 1)
	probe = w.send()
	hard = w.addHard("a", 1)
	require.Empty(t, w.send())
	hard[0].key.Verb = "patch"
	other := &item{key: hard[0].key}
	w.Ready(other, w.now-time.Minute, false, w.now)
	require.Equal(t, []*item{other}, w.send(), "it probes the other gate")
	w.done(other, Passed)
	w.done(probe[0], Denied)
	w.Ready(other, w.now-time.Minute, false, w.now)
	w.Ready(&item{key: other.key}, w.now-time.Minute, false, w.now)
	assert.Equal(t, "Hss", lanesOf(w.send(), hard))
}

// While new items arrive, those that have failed probe, too: they have every other turn.
func TestTriedItemsTakeTurns(t *testing.T) {
	w := newWorld(t)
	w.open("a")
	w.add("a", 200)
	var turns []bool
	for len(turns) < 20 {
		it, ok := w.Next(w.now)
		if !ok {
			at, ok := wakeOf(w.Schedule, w.now)
			require.True(t, ok)
			w.now = at
			continue
		}
		if it.pass.turn {
			turns = append(turns, it.tried)
		}
		w.fail(it, Failed)
	}
	for i := range turns[2:] {
		assert.Equal(t, i%2 == 0, turns[i+2], "turn %d", i+2)
	}
}

// This many items in a row probe without a delay: few if their requests fail, because the
// server can have too much to do, and more if it denies them. A single failure closes no
// gate.
func TestQuickProbes(t *testing.T) {
	for result, want := range map[Result]int{Failed: 1 + quick, Denied: quickDenied} {
		w := newWorld(t)
		w.open("a")
		w.add("a", 2*quickDenied)
		probes := 0
		for it, ok := w.Next(w.now); ok; it, ok = w.Next(w.now) {
			probes++
			w.done(it, result)
			w.Retry(it, w.now+time.Hour, w.now)
		}
		assert.Equal(t, want, probes, "result %d", result)
	}

	// A failure after denials is no denial.
	w := newWorld(t)
	w.open("a")
	w.add("a", 2*quickDenied)
	for n := range quickDenied {
		it, ok := w.Next(w.now)
		require.Equal(t, n <= quick, ok, "probe %d", n)
		if !ok {
			break
		}
		w.done(it, map[bool]Result{true: Denied, false: Failed}[n < quick])
		w.Retry(it, w.now+time.Hour, w.now)
	}
}
