package main

import (
	"fmt"
	"math"

	"github.com/eventseries/eventseries/test/bench"
)

// goal is something that is to hold.
type goal struct {
	What     string
	Measured string
	Holds    bool
}

// goals says what is to hold, and whether it does.
func goals(r *bench.Results) []goal {
	var all []goal
	add := func(holds bool, what, measured string, args ...any) {
		all = append(all, goal{What: what, Measured: fmt.Sprintf(measured, args...), Holds: holds})
	}

	allocs, floorWorst, newWorst, oldWorst := 0.0, 0.0, math.Inf(1), math.Inf(1)
	floorBest, newBest, oldBest := math.Inf(1), 0.0, 0.0
	for i := range r.Hot {
		h := &r.Hot[i]
		allocs = max(allocs, cost(h, bench.Ours).Allocs)
		if c := cost(h, bench.Floor); c != nil {
			floorWorst, floorBest = max(floorWorst, 1/c.Ratio.Median), min(floorBest, 1/c.Ratio.Median)
		}
		if c := cost(h, bench.ToolsNew); c != nil {
			newWorst, newBest = min(newWorst, c.Ratio.Median), max(newBest, c.Ratio.Median)
		}
		if c := cost(h, bench.ToolsOld); c != nil {
			oldWorst, oldBest = min(oldWorst, c.Ratio.Median), max(oldBest, c.Ratio.Median)
		}
	}
	if newBest > 0 && oldBest > 0 && floorWorst > 0 {
		// The recorder formats one note in ten seconds, which allocates.
		add(allocs < 0.001, "An occurrence of a running series allocates nothing", "%.3f allocations, whatever the object", allocs)
		add(newWorst >= 15, "and takes 15 times less CPU than with `tools/events`", "%.1f to %.1f times less", newWorst, newBest)
		add(oldWorst >= 100, "and 100 times less than with `tools/record`", "%.0f to %.0f times less", oldWorst, oldBest)
		add(floorWorst <= 2, "and at most twice the floor", "%.2f to %.2f times", floorBest, floorWorst)
	}
	for _, p := range r.Parallel {
		if p.Recorder == bench.Ours {
			add(p.Different.Median >= 1.7, "Two goroutines, a series each: 1.7 times the throughput of one", "%.2f times", p.Different.Median)
			add(p.Same.Median >= 1, "Two goroutines, the same series: no less throughput than one", "%.2f times", p.Same.Median)
		}
	}
	for _, h := range r.Heap {
		if h.Recorder == bench.Ours && h.Series >= 100_000 {
			add(max(h.Shared, h.Held) <= 600, fmt.Sprintf("At most 600 bytes of heap for each of %s series", count(h.Series)),
				"%.0f, and %.0f with its strings", h.Shared, h.Held)
		}
	}
	for _, s := range r.Simulation {
		if s.Series == pictured {
			add(float64(s.Busiest) <= 1.5*s.Mean, fmt.Sprintf("%s series, %s: the busiest minute has at most 1.5 times the mean of writes", count(s.Series), began(s)),
				"%.2f times", float64(s.Busiest)/s.Mean)
		}
	}
	if few, many := scale(r, 10_000), scale(r, 1_000_000); few != nil && many != nil {
		grows := func(what string, few, many []bench.Cost) {
			ours := cpuOf(many, bench.Ours) / cpuOf(few, bench.Ours)
			add(ours <= 2, what, "%.1f times (the floor %.1f)", ours, cpuOf(many, bench.Floor)/cpuOf(few, bench.Floor))
		}
		grows("From 10,000 to 1,000,000 series an occurrence of one in a hot loop becomes at most twice as dear", few.Hot, many.Hot)
		grows("so it does where all of them occur in turn", few.RoundRobin, many.RoundRobin)
		grows("and where all of them occur in no order", few.Random, many.Random)
	}
	for _, f := range r.Flood {
		if f.Recorder == bench.Ours {
			add(f.P999.Max < 1e6, "Under a flood of writes 99.9 % of the calls of Eventf take less than 1 ms", "%s at most", nanoseconds(f.P999.Max))
		}
	}
	return all
}

func hot(r *bench.Results, form string, related bool) *bench.Hot {
	for i := range r.Hot {
		if h := &r.Hot[i]; h.Form == form && h.Related == related {
			return h
		}
	}
	return nil
}

// cost returns what an occurrence costs with a recorder, nil if that is not known.
func cost(h *bench.Hot, recorder string) *bench.Cost {
	if h == nil {
		return nil
	}
	for i := range h.Costs {
		if h.Costs[i].Recorder == recorder {
			return &h.Costs[i]
		}
	}
	return nil
}

// cpuOf returns the CPU that a recorder takes, NaN if that is not known.
func cpuOf(costs []bench.Cost, recorder string) float64 {
	if c := cost(&bench.Hot{Costs: costs}, recorder); c != nil {
		return c.CPU.Median
	}
	return math.NaN()
}

func scale(r *bench.Results, series int) *bench.Scale {
	for i := range r.Scale {
		if r.Scale[i].Series == series {
			return &r.Scale[i]
		}
	}
	return nil
}

// began says how the series of a simulation came to the recorder.
func began(s bench.Simulation) string {
	if s.Rebuilt {
		return "after a restart"
	}
	return "begun within a minute"
}
