package bench

import (
	"runtime"
	"sync"
	"time"
)

// Hot is the cost of an occurrence of a running series, for one form of objects.
type Hot struct {
	Form    string `json:"form"`
	Related bool   `json:"related"`
	Costs   Costs  `json:"costs"`
}

// MeasureHot measures occurrences of one series on one goroutine. long is the CPU
// time of a turn.
func MeasureHot(form string, related bool, rounds int, long time.Duration) Hot {
	names := []string{Ours, Floor, ToolsNew, ToolsOld}
	if related {
		names = names[:3] // tools/record has no related objects
	}
	turns := make([]turn, len(names))
	s := newSubject(form, related, 1)
	for i, name := range names {
		d := newRecorder(name, 1)
		defer d.close()
		d.begin(1, func(int) *subject { return &s })
		run := func(n int) { d.emitAbout(n, &s) }
		turns[i] = turn{recorder: name, n: calibrate(run, long), run: run}
	}
	return Hot{Form: form, Related: related, Costs: interleave(rounds, turns)}
}

// parallelSeries is the number of series of MeasureParallel, to average over their places in
// memory.
const parallelSeries = 32

// Parallel is the throughput of two goroutines compared to one.
type Parallel struct {
	Recorder string `json:"recorder"`
	One      Spread `json:"one"` // wall time of an occurrence on one goroutine, in nanoseconds
	// Factors by which throughput grows with a second goroutine.
	Different Spread `json:"different"`
	Same      Spread `json:"same"`
	// CPU times of an occurrence in nanoseconds are more reliable on a busy machine.
	OneCPU       Spread `json:"oneCPU"`
	DifferentCPU Spread `json:"differentCPU"`
	SameCPU      Spread `json:"sameCPU"`
}

// MeasureParallel measures ours and the floor. long is the CPU time that a goroutine
// takes in a turn.
func MeasureParallel(rounds int, long time.Duration) []Parallel {
	var results []Parallel
	for _, name := range []string{Ours, Floor} {
		d := newRecorder(name, parallelSeries)
		defer d.close()
		subjects := references(parallelSeries)
		d.begin(parallelSeries, func(i int) *subject { return &subjects[i] })
		n := calibrate(func(n int) { d.emitAbout(n, &subjects[0]) }, long)
		p := Parallel{Recorder: name}
		samples := make(samples)
		for round := range rounds {
			// One goroutine runs between the others, to be close to both in time.
			a, b := &subjects[round%parallelSeries], &subjects[(round*7+1)%parallelSeries]
			same := together(d.recorder, n, a, a)
			one := together(d.recorder, n, a)
			different := together(d.recorder, n, a, b)
			samples.add(&p.One, float64(one.wall)/float64(n))
			samples.add(&p.OneCPU, float64(one.cpu)/float64(n))
			samples.add(&p.Different, 2*float64(one.wall)/float64(different.wall))
			samples.add(&p.DifferentCPU, float64(different.cpu)/float64(2*n))
			samples.add(&p.Same, 2*float64(one.wall)/float64(same.wall))
			samples.add(&p.SameCPU, float64(same.cpu)/float64(2*n))
		}
		samples.compute()
		results = append(results, p)
	}
	return results
}

// together emits n events about each subject, on one goroutine per subject.
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
