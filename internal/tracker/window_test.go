package tracker

import (
	"math/rand/v2"
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
		e := &Entry{spec: spec{state: series.Ongoing}}
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
