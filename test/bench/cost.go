package bench

import (
	"runtime"
	"slices"
	"syscall"
	"time"
)

// Spread is the median and the range of measurements.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf returns the spread of values, or the zero value if there are none. It does
// not modify values.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// Cost is the cost of an occurrence. Times are in nanoseconds.
type Cost struct {
	Recorder string `json:"recorder"`
	CPU      Spread `json:"cpu"`
	// Allocs and Bytes are allocations per occurrence, on all goroutines.
	Allocs float64 `json:"allocs"`
	Bytes  float64 `json:"bytes"`
	Ratio  Spread  `json:"ratio"` // CPU divided by that of the first recorder in the same round
}

// Costs are the costs of several recorders.
type Costs []Cost

// Of returns the cost of a recorder, or nil if it was not measured.
func (c Costs) Of(recorder string) *Cost {
	for i := range c {
		if c[i].Recorder == recorder {
			return &c[i]
		}
	}
	return nil
}

// turn is the work of one recorder in one round.
type turn struct {
	recorder string
	n        int // occurrences, fewer of slow recorders: all turns take about the same time
	run      func(n int)
}

// interleave runs all turns in each round.
func interleave(rounds int, turns []turn) Costs {
	costs, allocs, bytes := make(Costs, len(turns)), make([]Spread, len(turns)), make([]Spread, len(turns))
	s := make(samples)
	for round := range rounds {
		for i := range turns {
			// Rotate, since the order affects the caches.
			at := (i + round) % len(turns)
			t, c := turns[at], &costs[at]
			runtime.GC()
			before := used()
			t.run(t.n)
			u, n := used().since(before), float64(t.n)
			s.add(&c.CPU, float64(u.cpu)/n)
			s.add(&allocs[at], float64(u.allocs)/n)
			s.add(&bytes[at], float64(u.bytes)/n)
		}
		for i := range costs {
			s.add(&costs[i].Ratio, s[&costs[i].CPU][round]/s[&costs[0].CPU][round])
		}
	}
	s.compute()
	for i := range costs {
		costs[i].Recorder, costs[i].Allocs, costs[i].Bytes = turns[i].recorder, allocs[i].Median, bytes[i].Median
	}
	return costs
}

// samples collects the measurements of spreads.
type samples map[*Spread][]float64

func (s samples) add(to *Spread, v float64) { s[to] = append(s[to], v) }

// compute sets the spreads.
func (s samples) compute() {
	for to, values := range s {
		*to = SpreadOf(values)
	}
}

// calibrate returns the n with which run takes about the given CPU time.
func calibrate(run func(n int), long time.Duration) int {
	for n := 1; ; n *= 2 {
		begin := cpuTime()
		run(n)
		if took := cpuTime() - begin; took > long/20 {
			return max(1, int(float64(n)*float64(long)/float64(took)))
		}
	}
}

// usage is the resource usage of the process since its start.
type usage struct {
	wall, cpu     time.Duration
	allocs, bytes uint64
}

var began = time.Now()

// used returns the current usage. It stops the world for a moment.
func used() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{wall: time.Since(began), cpu: cpuTime(), allocs: m.Mallocs, bytes: m.TotalAlloc}
}

func (u usage) since(before usage) usage {
	return usage{u.wall - before.wall, u.cpu - before.cpu, u.allocs - before.allocs, u.bytes - before.bytes}
}

// cpuTime returns the user and system time of the process.
func cpuTime() time.Duration {
	var r syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &r))
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// liveHeap returns the bytes of reachable objects.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // frees what finalizers of the first collection released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
