package bench

import (
	"runtime"
	"sync"
	"time"
)

// Parallel is how the throughput of a recorder grows from one goroutine to two.
type Parallel struct {
	Recorder string `json:"recorder"`
	// One is what an occurrence costs one goroutine, in nanoseconds of wall time.
	One Spread `json:"one"`
	// Different and Same are how many times as many occurrences two goroutines emit
	// in a time, on a series each and on the same one.
	Different Spread `json:"different"`
	Same      Spread `json:"same"`
	// DifferentCPU and SameCPU are what their occurrences cost, in nanoseconds of
	// CPU. Where the machine has other things to do, they say more.
	OneCPU       Spread `json:"oneCPU"`
	DifferentCPU Spread `json:"differentCPU"`
	SameCPU      Spread `json:"sameCPU"`
}

// parallelSeries is from how many series those that two goroutines emit are taken,
// so that it is not one pair by chance that is measured.
const parallelSeries = 32

// MeasureParallel measures ours and the floor, with turns in which each goroutine
// takes so much time.
func MeasureParallel(rounds int, long time.Duration) []Parallel {
	var found []Parallel
	for _, name := range []string{Ours, Floor} {
		d := newRecorder(name, parallelSeries)
		defer d.close()
		subjects := references(parallelSeries)
		d.begin(parallelSeries, func(i int) *subject { return &subjects[i] })
		n := calibrate(func(n int) { d.emitAbout(n, &subjects[0]) }, long)
		var one, oneCPU, different, differentCPU, same, sameCPU []float64
		for round := range rounds {
			// As close in time as can be, and the one goroutine in the middle.
			a, b := &subjects[round%parallelSeries], &subjects[(round*7+1)%parallelSeries]
			twoSame := together(d.recorder, n, a, a)
			alone := together(d.recorder, n, a)
			twoDifferent := together(d.recorder, n, a, b)
			one = append(one, float64(alone.wall)/float64(n))
			oneCPU = append(oneCPU, float64(alone.cpu)/float64(n))
			different = append(different, 2*float64(alone.wall)/float64(twoDifferent.wall))
			differentCPU = append(differentCPU, float64(twoDifferent.cpu)/float64(2*n))
			same = append(same, 2*float64(alone.wall)/float64(twoSame.wall))
			sameCPU = append(sameCPU, float64(twoSame.cpu)/float64(2*n))
		}
		found = append(found, Parallel{
			Recorder: name, One: SpreadOf(one), Different: SpreadOf(different), Same: SpreadOf(same),
			OneCPU: SpreadOf(oneCPU), DifferentCPU: SpreadOf(differentCPU), SameCPU: SpreadOf(sameCPU),
		})
	}
	return found
}

// together has one goroutine for each subject emit n events about it.
func together(r recorder, n int, subjects ...*subject) usage {
	runtime.GC()
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(len(subjects))
	for _, s := range subjects {
		done.Go(func() {
			ready.Done()
			<-begin
			for range n {
				r.eventf(s)
			}
		})
	}
	ready.Wait()
	before := used()
	close(begin)
	done.Wait()
	return used().since(before)
}
