package heartbeat

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eventseries/eventseries/internal/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// standard is the Window of the recorder.
var standard = Window{6 * time.Minute, 36 * time.Minute}

// loop is a series, as a recorder keeps it.
type loop struct {
	Window
	rhythm  Rhythm
	last    time.Duration
	longest time.Duration // of its gaps
}

// occur requires that the series is not over when it occurs again. Of the first long gap
// nobody knows before.
func (l *loop) occur(t *testing.T, now time.Duration) {
	t.Helper()
	gap := now - l.last
	if gap >= l.slow() { // no window is shorter, and the hot path does not observe others
		if l.longest > 0 && (l.rhythm != Rhythm{} || gap < 3*l.longest) {
			require.Less(t, gap, l.Of(l.rhythm, l.last), "after %v at most", l.longest)
		}
		l.Observe(&l.rhythm, gap, now)
		require.LessOrEqual(t, l.Of(l.rhythm, now), max(l.Min, max(l.longest, gap)*5/2), "if it stops now")
	}
	l.last, l.longest = now, max(l.longest, gap)
}

func TestWindowOutlastsLoops(t *testing.T) {
	for _, work := range workload.Loops() {
		if work.Longest > standard.Max {
			continue
		}
		t.Run(work.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				l, first := loop{Window: standard}, true
				for at := range work.Until(4*time.Hour, seed) {
					at -= 2 * time.Hour
					if first {
						l.last, first = at, false
					} else {
						l.occur(t, at)
					}
				}
				if l.longest < 2*time.Minute {
					require.Equal(t, standard.Min, l.Of(l.rhythm, l.last))
				}
			}
		})
	}
}

// The gaps of a loop vary. None is longer than 1,000 seconds, nor more than twice the longest of the
// 36 minutes before. It is never over while it runs; when it stops, at most 36 minutes later, and after
// 6 if it has been fast for twice as long.
func TestWindowOutlastsIrregularLoops(t *testing.T) {
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var r Rhythm
		type gap struct{ length, end time.Duration }
		gaps := []gap{{time.Duration(rng.Int64N(int64(1000 * time.Second))), time.Duration(rng.Int64N(int64(20*time.Hour))) - 10*time.Hour}}
		last := gaps[0].end
		standard.Observe(&r, gaps[0].length, last)
		shortest := time.Duration(rng.Int64N(int64(5 * time.Minute)))
		for range 20 + rng.IntN(300) {
			longest, slow := time.Duration(0), false
			for _, g := range gaps {
				if last-g.end <= standard.Max {
					longest = max(longest, g.length)
				}
				slow = slow || last-g.end <= 2*standard.Max && g.length >= standard.slow()
			}
			window := standard.Of(r, last)
			require.GreaterOrEqual(t, standard.Max, window)
			if !slow {
				require.Equal(t, standard.Min, window, "seed %d", seed)
			}
			most := min(1000*time.Second, max(2*longest, time.Minute))
			next := min(shortest, most-1) + time.Duration(rng.Float64()*rng.Float64()*float64(most-min(shortest, most-1)))
			require.Less(t, next, window, "seed %d: a gap of %v, after one of %v in the last 36 minutes", seed, next, longest)
			last += next
			if next >= standard.slow() { // the hot path does not observe others
				standard.Observe(&r, next, last)
			}
			gaps = append(gaps, gap{next, last})
		}
	}
}

// A back-off doubles up to a limit. Work and jitter add at most a twentieth.
func TestWindowOutlastsBackoff(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		l := loop{Window: standard, last: time.Duration(rng.Int64N(int64(10*time.Hour))) - 5*time.Hour}
		limit := time.Second + time.Duration(rng.Int64N(int64(1000*time.Second)))
		work := time.Duration(rng.Int64N(int64(limit / 20)))
		for delay := 1 + time.Duration(rng.Int64N(int64(time.Minute))); l.longest < 4*limit/5 || rng.IntN(10) > 0; delay = min(2*delay, limit) {
			l.occur(t, l.last+work+time.Duration(float64(delay)*(1+0.05*rng.Float64())))
		}
	}
}

// A loop that was slow and is fast now ends after Min again.
func TestWindowForgets(t *testing.T) {
	w, begin := standard, 100*time.Hour+13*time.Minute
	for _, gap := range []time.Duration{4 * time.Minute, 1000 * time.Second, w.Max} {
		var r Rhythm
		w.Observe(&r, gap, begin)
		window := min(gap*21/10, w.Max)
		assert.Equal(t, window, w.Of(r, begin))
		assert.Equal(t, window, w.Of(r, begin+w.Max), "it is remembered for as long as the longest window")
		assert.Equal(t, window, w.Of(r, begin+2*w.Max-1))
		for _, idle := range []time.Duration{2, 3, 1000, 1 << 15} {
			assert.Equal(t, w.Min, w.Of(r, begin+idle*w.Max))
		}
		assert.Equal(t, window, w.Of(r, begin-w.Max), "a goroutine that comes late forgets nothing")
	}
}

// A caller who wakes when Due says finds the end of a series on time, though it does not
// observe fast occurrences.
func TestDueIsOnTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		w := standard
		at := time.Duration(rng.Int64N(int64(10*time.Hour))) - 5*time.Hour
		var r Rhythm
		for range rng.IntN(4) {
			gap := time.Duration(rng.Int64N(int64(20 * time.Minute)))
			at += gap
			w.Observe(&r, gap, at)
		}
		times := []time.Duration{at} // fast from here on
		for end := at + time.Duration(rng.Int64N(int64(90*time.Minute))); at < end; {
			at += time.Duration(rng.Int64N(int64(w.slow())))
			times = append(times, at)
		}
		now, last, wakes := times[0], times[0], 0
		for now-last < w.Of(r, last) {
			due := w.Due(r, last, now)
			require.Greater(t, due, now)
			now = due
			for ; len(times) > 1 && times[1] <= now; times = times[1:] {
				last = times[1]
			}
			wakes++
		}
		require.Len(t, times, 1, "it ends too early")
		require.Equal(t, last+w.Of(r, last), now, "it ends late")
		require.LessOrEqual(t, wakes, 40)
	}
}

func TestDueAfterAGapIsForgotten(t *testing.T) {
	r := Rhythm{window: 1239, next: 576}
	last, now := 2*standard.Max-time.Second, 2*standard.Max+time.Second
	assert.Equal(t, 1239*time.Second, standard.Of(r, last))
	assert.Equal(t, now+576*time.Second, standard.Due(r, last, now), "an occurrence can follow at once")
}

// People read windows: they are whole seconds. Rounding up never makes them longer than Max.
func TestWindowsAreWholeSeconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 10_000 {
		w := Window{Min: time.Second, Max: time.Minute + time.Duration(rng.Int64N(int64(100*time.Hour)))}
		var r Rhythm
		gap := time.Second + time.Duration(rng.Int64N(int64(w.Max)))
		w.Observe(&r, gap, 0)
		got := w.Of(r, 0)
		require.Equal(t, w.lasting(gap), got)
		require.InDelta(t, min(w.Max, gap*21/10), got, float64(time.Second))
		if got < w.Max {
			require.Zero(t, got%time.Second)
		}
	}
	short := Window{10 * time.Millisecond, 60 * time.Millisecond}
	var r Rhythm
	short.Observe(&r, 10*time.Millisecond, 0)
	assert.Equal(t, short.Max, short.Of(r, 0))
}

// A loop that is irregular is remembered for longer: the window is not too short again and
// again. One that has stopped being irregular is forgotten in the end.
func TestWindowOfAnIrregularLoop(t *testing.T) {
	w, now, early := standard, 13*time.Minute, 0
	var r Rhythm
	for range 24 * 60 / 82 {
		for range 150 { // fast
			now += 30 * time.Second
		}
		if gap := 7 * time.Minute; gap >= w.Of(r, now) {
			early++
			now += gap
			w.Observe(&r, gap, now)
		}
	}
	assert.Equal(t, 2, early)
	assert.Equal(t, w.Min, w.Of(r, now+(longMemory+2)*w.Max))
	assert.Less(t, w.Min, w.Of(r, now+(longMemory-2)*w.Max-24*time.Hour))

	now += (2*longMemory + 2) * w.Max // a day later, the loop is as any other
	w.Observe(&r, 7*time.Minute, now)
	assert.Equal(t, w.Min, w.Of(r, now+2*w.Max))
}

// A loop that becomes faster has a shorter window, and never one that is too short.
func TestWindowOfALoopThatBecomesFaster(t *testing.T) {
	w, now := standard, -time.Hour
	l := loop{Window: w, last: now}
	for _, gap := range []time.Duration{16 * time.Minute, 10 * time.Minute, 4 * time.Minute} {
		for end := now + 3*w.Max; now < end; {
			now += gap
			l.occur(t, now)
		}
		assert.Equal(t, gap*21/10, w.Of(l.rhythm, now))
	}
}

func TestFixedWindow(t *testing.T) {
	for _, w := range []Window{{time.Minute, time.Minute}, {time.Hour, 0}, {math.MaxInt64 / 4, 1}} {
		var r Rhythm
		w.Observe(&r, 30*time.Hour, 40*time.Hour)
		assert.Equal(t, w.Min, w.Of(r, 40*time.Hour))
		assert.Equal(t, w.Min+time.Hour, w.Due(r, time.Hour, 2*time.Hour))
	}
}

// The window is 2.1 times the gap, also if the longest one is long.
func TestWindowWithALongMaximum(t *testing.T) {
	for _, longest := range []time.Duration{36 * time.Minute, 24 * time.Hour, 7 * 24 * time.Hour} {
		w := Window{Min: 6 * time.Minute, Max: longest}
		var r Rhythm
		w.Observe(&r, 3*time.Minute, 3*time.Minute)
		assert.LessOrEqual(t, w.Of(r, 3*time.Minute), 450*time.Second, "at most %v", longest) // 2.5 periods
	}
}

func TestRemember(t *testing.T) {
	const m = time.Minute
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		w := standard
		now := time.Duration(rng.Int64N(int64(20*time.Hour))) - 10*time.Hour
		var r Rhythm
		before := w.Min
		if rng.IntN(2) == 0 {
			w.Observe(&r, time.Duration(rng.Int64N(int64(20*m))), now-time.Duration(rng.Int64N(int64(w.Max*3/2))))
			before = w.Of(r, now)
		}
		window := time.Duration(rng.Int64N(int64(50*m))) - 5*m
		w.Remember(&r, window, now)
		want := max(before, min(window, w.Max))
		require.InDelta(t, want, w.Of(r, now), float64(time.Second), "%v, after %v", window, before)
		require.GreaterOrEqual(t, w.Of(r, now), want)
		if window >= before {
			require.GreaterOrEqual(t, w.Of(r, now+2*w.Max-time.Second), want, "remembered for two periods")
		}
		require.Equal(t, w.Min, w.Of(r, now+2*w.Max+time.Second), "and forgotten")
	}

	loop := Rhythm{}
	standard.Observe(&loop, 9*m, 0)
	standard.Observe(&loop, 25*m, 25*m) // too late twice
	require.Equal(t, uint8(2), loop.early)
	standard.Remember(&loop, 30*m, 26*m)
	assert.Equal(t, standard.Max, standard.Of(loop, 20*time.Hour), "a long memory stays")

	short, r := Window{Min: m, Max: m}, Rhythm{}
	short.Remember(&r, time.Hour, 0)
	assert.Equal(t, m, short.Of(r, 0))
}
