package bench

import (
	"runtime"
	"time"
)

// DefaultRounds is how many turns each recorder has.
const DefaultRounds = 7

// Cost is what an occurrence costs. Times are in nanoseconds.
type Cost struct {
	Recorder string `json:"recorder"`
	CPU      Spread `json:"cpu"`
	Wall     Spread `json:"wall"`
	// Allocs and Bytes are allocated for each, on all goroutines.
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
	// Ratio is how many times the CPU of the first recorder it takes.
	Ratio Spread `json:"ratio"`
}

// turn is the work of one recorder in one round.
type turn struct {
	recorder string
	// n is how many occurrences run takes in; fewer of the slow ones, so that all
	// turns take about as long.
	n   int
	run func(n int)
}

// take measures one turn.
func (t turn) take() usage {
	runtime.GC()
	before := used()
	t.run(t.n)
	return used().since(before)
}

// interleave has all take their turns, several times.
func interleave(rounds int, turns []turn) []Cost {
	type column struct{ cpu, wall, allocs, bytes, ratio []float64 }
	columns := make([]column, len(turns))
	for round := range rounds {
		cpu := make([]float64, len(turns))
		for i := range turns {
			// Who comes first has the cache, and the machine, in another state.
			at := (i + round) % len(turns)
			t, c := turns[at], &columns[at]
			u := t.take()
			n := float64(t.n)
			cpu[at] = float64(u.cpu) / n
			c.cpu = append(c.cpu, cpu[at])
			c.wall = append(c.wall, float64(u.wall)/n)
			c.allocs = append(c.allocs, float64(u.allocs)/n)
			c.bytes = append(c.bytes, float64(u.bytes)/n)
		}
		for i := range columns {
			columns[i].ratio = append(columns[i].ratio, cpu[i]/cpu[0])
		}
	}
	costs := make([]Cost, len(turns))
	for i, c := range columns {
		costs[i] = Cost{
			Recorder: turns[i].recorder,
			CPU:      SpreadOf(c.cpu),
			Wall:     SpreadOf(c.wall),
			Allocs:   SpreadOf(c.allocs).Median,
			Bytes:    SpreadOf(c.bytes).Median,
			Ratio:    SpreadOf(c.ratio),
		}
	}
	return costs
}

// calibrate returns about how many calls of run(1) take so long.
func calibrate(run func(n int), long time.Duration) int {
	for n := 1; ; n *= 2 {
		begin := cpuTime()
		run(n)
		if took := cpuTime() - begin; took > long/20 {
			return max(1, int(float64(n)*float64(long)/float64(took)))
		}
	}
}
