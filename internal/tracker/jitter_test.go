package tracker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const beatInterval = 30 * time.Minute

// beating is an ongoing series.
type beating struct {
	due, written time.Duration
	hash         uint64
}

func (s *beating) plan(at time.Duration) {
	s.due = spread(at+beatInterval, beatInterval, s.hash)
}

// busiest writes the heartbeats of a fleet up to a time, and returns how many are in
// the busiest minute after from, divided by the mean.
func busiest(fleet []beating, from, until time.Duration) float64 {
	counts, total := make([]int, (until-from)/time.Minute), 0
	for i := range fleet {
		for s := &fleet[i]; s.due < until; s.plan(s.written) {
			s.written = s.due + time.Millisecond // a request takes time
			if s.due >= from {
				counts[(s.due-from)/time.Minute]++
				total++
			}
		}
	}
	return float64(slices.Max(counts)*len(counts)) / float64(total)
}

// Of 1,000 series, 33 heartbeats are due in a mean minute. The busiest of 30 minutes
// exceeds 1.5 times that for one of 16 sets of hashes, so this takes the median.
func TestJitterSpreadsHeartbeats(t *testing.T) {
	for n, runs := range map[int]uint64{1000: 25, 10_000: 5, 100_000: 1} {
		var peaks []float64
		for seed := range runs {
			rng, fleet := rand.New(rand.NewPCG(seed, 0)), make([]beating, n)
			for i := range fleet {
				fleet[i].hash = rng.Uint64()
				fleet[i].plan(time.Minute * time.Duration(i) / time.Duration(n)) // all begin within a minute
			}
			peaks = append(peaks, busiest(fleet, time.Minute, 4*time.Hour))

			// A restarted process plans the same if it has the same hashes.
			for i := range fleet {
				s := &fleet[i]
				due := s.due
				s.plan(4 * time.Hour)
				require.LessOrEqual(t, s.due, due)
				require.LessOrEqual(t, s.due, s.written+beatInterval)
			}
			assert.LessOrEqual(t, busiest(fleet, 4*time.Hour, 8*time.Hour), peaks[seed]*1.01)
		}
		slices.Sort(peaks)
		assert.Less(t, peaks[len(peaks)/2], 1.5, n)
		t.Logf("%d series: %.2f times the mean (median), at most %.2f", n, peaks[len(peaks)/2], peaks[len(peaks)-1])
	}
}

func TestJitter(t *testing.T) {
	const m = time.Minute
	for _, tt := range []struct {
		latest time.Duration
		hash   uint64
		want   time.Duration
	}{
		{65 * m, uint64(10 * m), 40 * m},
		{65 * m, uint64(40 * m), 40 * m}, // 40 modulo 30
		{-5 * m, uint64(10 * m), -20 * m},
		{70 * m, uint64(10 * m), 70 * m},
	} {
		assert.Equal(t, tt.want, spread(tt.latest, 30*m, tt.hash), "%v at %v", tt.latest, tt.hash)
	}

	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		interval := 1 + time.Duration(rng.Int64N(int64(time.Hour)))
		latest, hash := time.Duration(rng.Int64N(1<<50))-1<<49, rng.Uint64()
		at := spread(latest, interval, hash)
		require.LessOrEqual(t, at, latest)
		require.Greater(t, at, latest-interval)
		require.Equal(t, at+interval, spread(at+interval, interval, hash), "no later interval is shorter")
		late := time.Duration(rng.Int64N(int64(interval)))
		require.Equal(t, at+interval, spread(at+late+interval, interval, hash), "a late heartbeat keeps the phase")
	}
}
