package heartbeat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fleet is many ongoing series: when each is due, and a hash of each.
type fleet struct {
	due, written []time.Duration
	hashes       []uint64
}

// newFleet returns n series that begin within a minute.
func newFleet(n int, rng *rand.Rand, plan planner) *fleet {
	f := &fleet{}
	for i := range n {
		at := time.Minute * time.Duration(i) / time.Duration(n)
		f.written, f.hashes = append(f.written, at), append(f.hashes, rng.Uint64())
		f.due = append(f.due, plan(at, f.hashes[i]))
	}
	return f
}

type planner func(at time.Duration, hash uint64) time.Duration

// run writes the heartbeats up to a time, and returns how many are in each minute
// after from.
func (f *fleet) run(from, until time.Duration, plan planner) []int {
	counts := make([]int, (until-from)/time.Minute)
	for i := range f.due {
		for f.due[i] < until {
			f.written[i] = f.due[i] + time.Millisecond // a request takes time
			if minute := (f.due[i] - from) / time.Minute; f.due[i] >= from {
				counts[minute]++
			}
			f.due[i] = plan(f.written[i], f.hashes[i])
		}
	}
	return counts
}

// peak returns the busiest minute, divided by the mean.
func peak(counts []int) float64 {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return float64(slices.Max(counts)) * float64(len(counts)) / float64(sum)
}

// Of 1,000 series, 33 heartbeats are due in a mean minute. The busiest of 30 minutes
// exceeds 1.5 times that for one of 16 sets of hashes, so this takes the median.
func TestJitterSpreadsHeartbeats(t *testing.T) {
	iv := Intervals{Heartbeat: simBeat}
	plan := func(at time.Duration, hash uint64) time.Duration { return iv.Jitter(at+simBeat, hash) }
	for n, runs := range map[int]uint64{1000: 25, 10_000: 5, 100_000: 1} {
		var peaks []float64
		for seed := range runs {
			f := newFleet(n, rand.New(rand.NewPCG(seed, 0)), plan)
			counts := f.run(time.Minute, 4*time.Hour, plan)
			peaks = append(peaks, peak(counts))

			// A restarted process plans the same if it has the same hashes.
			due := slices.Clone(f.due)
			for i := range f.due {
				f.due[i] = plan(4*time.Hour, f.hashes[i])
				require.LessOrEqual(t, f.due[i], due[i])
				require.LessOrEqual(t, f.due[i], f.written[i]+simBeat)
			}
			assert.LessOrEqual(t, peak(f.run(4*time.Hour, 8*time.Hour, plan)), peaks[seed]*1.01)
		}
		slices.Sort(peaks)
		assert.Less(t, peaks[len(peaks)/2], 1.5, n)
		t.Logf("%d series: %.2f times the mean (median), at most %.2f", n, peaks[len(peaks)/2], peaks[len(peaks)-1])
	}
}

func TestJitter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		iv := Intervals{Heartbeat: 1 + time.Duration(rng.Int64N(int64(time.Hour)))}
		latest, hash := time.Duration(rng.Int64N(1<<50))-1<<49, rng.Uint64()
		at := iv.Jitter(latest, hash)
		require.LessOrEqual(t, at, latest)
		require.Greater(t, at, latest-iv.Heartbeat)
		require.Equal(t, at+iv.Heartbeat, iv.Jitter(at+iv.Heartbeat, hash), "no later interval is shorter")
		late := time.Duration(rng.Int64N(int64(iv.Heartbeat)))
		require.Equal(t, at+iv.Heartbeat, iv.Jitter(at+late+iv.Heartbeat, hash), "a late heartbeat keeps the phase")
	}
}

func TestAfter(t *testing.T) {
	const s, m, never = time.Second, time.Minute, time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		iv         Intervals
		heartbeats int
		want       time.Duration
	}{
		{Intervals{Heartbeat: 30 * m}, 0, 30 * m},
		{Intervals{Heartbeat: 30 * m}, math.MaxInt, 30 * m},
		{Intervals{Heartbeat: 30 * m}, math.MinInt, 30 * m},
		{Intervals{Heartbeat: 30 * m, First: 31 * m}, 0, 30 * m},
		{Intervals{Heartbeat: 30 * m, First: -1}, 0, 30 * m},

		// Doubling hits Heartbeat exactly, and misses it by one either way.
		{Intervals{Heartbeat: 8 * s, First: s}, 2, 4 * s},
		{Intervals{Heartbeat: 8 * s, First: s}, 3, 8 * s},
		{Intervals{Heartbeat: 8 * s, First: s}, 4, 8 * s},
		{Intervals{Heartbeat: 8*s + 1, First: s}, 3, 8 * s},
		{Intervals{Heartbeat: 8*s + 1, First: s}, 4, 8*s + 1},
		{Intervals{Heartbeat: 8*s - 1, First: s}, 3, 8*s - 1},

		// The limits of a Duration.
		{Intervals{Heartbeat: never, First: 1}, 62, 1 << 62},
		{Intervals{Heartbeat: never, First: 1}, 63, never},
		{Intervals{Heartbeat: never, First: 1}, math.MaxInt, never},
		{Intervals{Heartbeat: never, First: never}, 1, never},
		{Intervals{Heartbeat: never, First: never/2 + 1}, 1, never},
	} {
		assert.Equal(t, tt.want, tt.iv.After(tt.heartbeats), "%+v after %d", tt.iv, tt.heartbeats)
	}
	early := Intervals{Heartbeat: 30 * m, First: m}
	for i, minutes := range []time.Duration{1, 1, 2, 4, 8, 16, 30, 30} {
		assert.Equal(t, minutes*m, early.After(i-1))
	}
	for _, i := range []int{63, 64, math.MaxInt} {
		assert.Equal(t, 30*m, early.After(i))
	}
}
