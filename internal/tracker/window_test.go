package tracker

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

// The schedule does not know of occurrences that count without a lock, so they must never
// make the deadline of a series earlier: neither by what they let the machine forget, nor
// by ending what it assumes.
func TestOccurrencesMakeNoDeadlineEarlier(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := &rules{opts: Options{FinishAfter: between(rng, time.Second, time.Hour)}.WithDefaults(), epoch: start}
		r.opts.MaxWindow = between(rng, r.opts.FinishAfter, 6*r.opts.FinishAfter)
		e := &Entry{spec: spec{progress: progress{state: series.Ongoing}}}
		e.phase, e.status.state, e.status.beatAt = live, series.Ongoing, never
		at := between(rng, time.Millisecond, 3*r.opts.MaxWindow)
		for range rng.IntN(4) {
			gap := between(rng, time.Millisecond, r.opts.MaxWindow)
			at += gap
			e.learn(r, gap, at)
			e.counter.occurred(at)
		}
		e.assume(r, between(rng, r.opts.FinishAfter, r.opts.MaxWindow), between(rng, time.Second, r.opts.MaxWindow))

		fast := func() time.Duration { return 1 + time.Duration(rng.Int64N(int64(r.opts.FinishAfter/21*10))) }
		for range rng.IntN(10) {
			at += fast()
			e.counter.occurred(at)
		}
		deadline, placed := e.deadline(r, at), at
		for at += fast(); at < deadline; at += fast() {
			e.counter.occurred(at)
			require.GreaterOrEqual(t, e.deadline(r, at), deadline, "seed %d: placed at %v, occurred at %v", seed, placed, at)
		}
	}
}

// A sink that returns no resourceVersion cannot tell that another process has written. If
// the response to a write is lost, the Event may say another window than the recorder
// knows, so the next write says the window, whatever it is.
func TestWindowAfterLostResponse(t *testing.T) {
	w := newWorld(t, Options{MaxWindow: 36 * time.Minute}, newServer(t))
	w.remote.versionless = true
	run := func(now time.Duration, commands ...string) {
		for _, command := range commands {
			runCommand(t, pair{w: w}, now, strings.Fields(command))
		}
	}
	run(0, "see a x2", "write a/1")
	run(10*time.Minute, "see a", "flush", "begin a/1", "lost a/1")
	require.Contains(t, w.server("a"), "window 21m")
	now := 10 * time.Minute
	for now < 2*time.Hour {
		now += time.Minute
		run(now, "see a")
	}
	run(now, "flush", "write a/1")
	require.NotContains(t, w.server("a"), "window")
}

// A sink that returns no resourceVersion cannot reject a patch that arrives late, after a
// newer one. The next write repairs all that it has overwritten: also the window.
func TestWindowAfterLatePatch(t *testing.T) {
	tr, k := New(Options{}, start), testKey("a")
	write := func(after time.Duration, o Outcome) string {
		now := start.Add(after)
		tr.Observe(k, Occurrence{}, now)
		defer tr.Flush(now).Stop()
		w, _, ok := tr.Next(now)
		require.True(t, ok)
		patch, err := w.Patch()
		if !w.Creates() {
			require.NoError(t, err)
		}
		require.Empty(t, tr.Apply(w, Result{Outcome: o}, now))
		return string(patch)
	}
	write(0, Written)
	require.Contains(t, write(5*time.Minute, Troubled), `"eventseries.dev/window":"10m31s"`)
	require.Contains(t, write(15*time.Minute, Written), `"eventseries.dev/window":"21m1s"`)
	// The server applies the first patch now.
	require.Contains(t, write(25*time.Minute, Written), `"eventseries.dev/window":"21m1s"`)
}
