package tracker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

// What no Event contains is not written, however often it has occurred. If an Event may
// contain it, that Event must not stay Ongoing.
func TestRefilterBeforeTheFirstWrite(t *testing.T) {
	for _, occurrences := range []int{1, 2, 5} {
		for name, c := range map[string]struct {
			before func(t *testing.T, tr *Tracker, now time.Time) (after func() []Drop)
			isSent bool // an Event may contain the series
		}{
			"waiting": {},
			"denied": {before: func(t *testing.T, tr *Tracker, now time.Time) func() []Drop {
				tr.Apply(send(t, tr, now, Create), Result{Outcome: Denied}, now)
				return nil
			}},
			"in flight, then denied": {before: func(t *testing.T, tr *Tracker, now time.Time) func() []Drop {
				w := send(t, tr, now, Create)
				return func() []Drop { return tr.Apply(w, Result{Outcome: Denied}, now) }
			}},
			"in flight, then written": {before: func(t *testing.T, tr *Tracker, now time.Time) func() []Drop {
				w := send(t, tr, now, Create)
				return func() []Drop { return tr.Apply(w, Result{}, now) }
			}, isSent: true},
			"no response": {before: func(t *testing.T, tr *Tracker, now time.Time) func() []Drop {
				tr.Apply(send(t, tr, now, Create), Result{Outcome: Troubled}, now)
				return nil
			}, isSent: true},
		} {
			t.Run(fmt.Sprint(name, " x", occurrences), func(t *testing.T) {
				now, accepts := time.Now(), true
				tr := New(Options{Accepts: func(series.Key) bool { return accepts }}, now)
				k := testKey("a")
				for range occurrences {
					require.Empty(t, tr.Observe(k, Occurrence{}, now))
				}
				after := func() []Drop { return nil }
				if c.before != nil {
					if f := c.before(t, tr, now); f != nil {
						after = f
					}
				}
				accepts = false
				drops := append(tr.Refilter(now), after()...)
				assert.Zero(t, tr.Stats(now).Ongoing)
				writes, delivered := 0, 0
				now = now.Add(10 * time.Minute)
				tr.Advance(now)
				drops = append(drops, writeAll(tr, now, func(w *Write) Outcome {
					writes++
					delivered = int(w.Series.Count)
					assert.NotEqual(t, series.Ongoing, w.Series.State)
					return Written
				})...)
				want := 0
				if c.isSent && occurrences > 1 { // an Event of one occurrence is not Ongoing
					want = 1
				}
				assert.Equal(t, want, writes)
				for _, d := range drops {
					assert.Equal(t, DropFiltered, d.Reason)
					delivered += d.Count
				}
				if name != "in flight, then written" || occurrences > 1 {
					assert.Equal(t, occurrences, delivered)
				}
			})
		}
	}
}

// An occurrence that comes while a series is lost is a part of the loss, or observed after it.
func TestNothingIsCountedAfterALoss(t *testing.T) {
	now := time.Now()
	tr := New(Options{}, now)
	k := testKey("a")
	for range 2 {
		require.Empty(t, tr.Observe(k, Occurrence{}, now))
	}
	e, counted, _ := tr.Count(k, tr.offset(now))
	require.True(t, counted, "an Ongoing series counts without a lock")
	var s step
	e.lose(&s, DropFiltered)
	assert.Equal(t, 3, s.lost)
	_, counted, _ = tr.Count(k, tr.offset(now))
	assert.False(t, counted)
}
