package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

// goal is a performance goal and its measurement.
type goal struct {
	What     string
	Measured string
	Holds    bool
}

// goals returns the goals for which there are results.
func goals(r *bench.Results) []goal {
	var all []goal
	add := func(holds bool, what, measured string, args ...any) {
		all = append(all, goal{What: what, Measured: fmt.Sprintf(measured, args...), Holds: holds})
	}

	// because adds a goal, and says why if it does not hold, unless that is empty.
	because := func(reason string, holds bool, what, measured string, args ...any) {
		measured = fmt.Sprintf(measured, args...)
		if !holds && reason != "" {
			measured += "; " + reason
		}
		add(holds, what, "%s", measured)
	}

	allocs := 0.0
	ratios := make(map[string][]float64)
	for _, h := range r.Hot {
		for _, c := range h.Costs {
			ratios[c.Recorder] = append(ratios[c.Recorder], c.Ratio.Median)
		}
		allocs = max(allocs, h.Costs.Of(bench.Ours).Allocs)
	}
	worst := func(recorder string) float64 { return slices.Min(ratios[recorder]) }
	best := func(recorder string) float64 { return slices.Max(ratios[recorder]) }
	if len(ratios) > 0 {
		// One note in ten seconds is formatted, which allocates.
		add(allocs < 0.001, "An occurrence of a running series does not allocate", "%.3f allocations for any form of object", allocs)
		ratio := func(h bench.Hot) float64 { return h.Costs.Of(bench.ToolsNew).Ratio.Median }
		least := slices.MinFunc(r.Hot, func(a, b bench.Hot) int { return cmp.Compare(ratio(a), ratio(b)) })
		add(ratio(least) >= 25, "CPU per occurrence: at least 25 times less than `tools/events`", "%.1f to %.1f times, least for %s, where it is %.1f times for the floor with the time",
			ratio(least), best(bench.ToolsNew), form(least), least.Costs.Of(bench.ToolsNew).CPU.Median/least.Costs.Of(bench.FloorClock).CPU.Median)
		add(worst(bench.ToolsOld) >= 100, "CPU per occurrence: at least 100 times less than `tools/record`", "%.0f to %.0f times", worst(bench.ToolsOld), best(bench.ToolsOld))
		add(1/worst(bench.FloorClock) <= 1.15, "CPU per occurrence: at most 1.15 times the floor with the time", "%.2f to %.2f times", 1/best(bench.FloorClock), 1/worst(bench.FloorClock))
	}
	for _, f := range r.Fresh {
		all = append(all, firstEvent("A first event", f.Costs)...)
	}
	for _, s := range r.Singles {
		all = append(all, firstEvent("An event that does not recur", s.Costs)...)
		ours, peer := s.Sent[0], min(s.Sent[1].Bytes, s.Sent[2].Bytes)
		add(ours.Bytes <= peer, "An event that does not recur: at most the bytes on the wire of the better peer", "%d and %d per event", ours.Bytes/s.Events, peer/s.Events)
	}
	for _, p := range r.Parallel {
		if p.Recorder == bench.Ours {
			add(p.Different.Median >= 1.7, "Two goroutines with one series each: at least 1.7 times the throughput of one", "%.2f times", p.Different.Median)
			add(p.Same.Median >= 1, "Two goroutines with the same series: at least the throughput of one", "%.2f times", p.Same.Median)
		}
	}
	for _, h := range r.Heap {
		limit := 350.0
		if h.Series <= 1000 {
			limit = 400
		}
		if h.Recorder == bench.Ours {
			because("an entry has 192 bytes, its places in the index, the schedule, and the eviction list 70, and its note 80. The lists double when they grow",
				h.Shared <= limit, fmt.Sprintf("Heap for %s series: at most %.0f bytes per series, without the strings of its object", chart.Number(h.Series), limit),
				"%.0f bytes, and %.0f with the strings", h.Shared, h.Held)
		}
	}
	for _, s := range r.Simulation {
		if s.Series == pictured || s.Series == 1000 {
			add(float64(s.Busiest) <= 1.5*s.Mean, fmt.Sprintf("Writes for %s series, %s: at most 1.5 times the mean in the busiest minute", chart.Number(s.Series), began(s)),
				"%.2f times", float64(s.Busiest)/s.Mean)
		}
	}
	scales := make(map[int]bench.Scale)
	for _, s := range r.Scale {
		scales[s.Series] = s
	}
	if few, many := scales[10_000], scales[1_000_000]; few.Series > 0 && many.Series > 0 {
		grows := func(order string, few, many bench.Costs) {
			growth := func(recorder string) float64 { return many.Of(recorder).CPU.Median / few.Of(recorder).CPU.Median }
			goal := "CPU per occurrence, from 10,000 to 1,000,000 series, " + order + ": grows no more than the floor"
			because("an occurrence waits for a slot of the index and for two cache lines of the series, the floor for one of its map",
				growth(bench.Ours) <= growth(bench.Floor), goal, "%.2f times (the floor %.2f)", growth(bench.Ours), growth(bench.Floor))
		}
		grows("a hundred of them in a hot loop", few.Hot, many.Hot)
		grows("all in order", few.RoundRobin, many.RoundRobin)
		grows("all in random order", few.Random, many.Random)
	}
	for _, s := range r.Start {
		if s.Whole.Restored > 0 {
			goal := fmt.Sprintf("Restart with %s Events: at most a quarter of the %%s of whole pages in JSON", chart.Number(s.Events))
			read := s.Reads[len(s.Reads)-1].Wall
			because(fmt.Sprintf("the server sets the limit: to read the same pages without decoding them takes %s of %s", nanoseconds(float64(read)), nanoseconds(float64(s.Rebuild.Wall))),
				4*s.Rebuild.Wall <= s.Whole.Wall, fmt.Sprintf(goal, "time"), "%.2f", float64(s.Rebuild.Wall)/float64(s.Whole.Wall))
			add(4*s.Rebuild.CPU <= s.Whole.CPU, fmt.Sprintf(goal, "CPU"), "%.2f", float64(s.Rebuild.CPU)/float64(s.Whole.CPU))
			add(4*s.Rebuild.Allocated <= s.Whole.Allocated, fmt.Sprintf(goal, "allocated bytes"), "%.2f", float64(s.Rebuild.Allocated)/float64(s.Whole.Allocated))
			because("the series themselves are most of it",
				4*s.Rebuild.Peak <= s.Whole.Peak, fmt.Sprintf(goal, "peak heap"), "%.2f, with the restored series", float64(s.Rebuild.Peak)/float64(s.Whole.Peak))
			because("its pages have ten times as many Events, which halves the CPU of the server",
				4*s.Rebuild.Passing() <= s.Whole.Passing(), fmt.Sprintf(goal, "peak heap without the restored series"), "%.2f", float64(s.Rebuild.Passing())/float64(s.Whole.Passing()))
		}
	}
	for _, l := range r.List {
		for _, h := range l.Herds {
			if !h.Unlimited {
				goal := fmt.Sprintf("Lists of %s processes that start within a minute, with %s Events and %d writes per second: less than one core of the server for ten minutes",
					chart.Number(h.Processes()), chart.Number(l.Events), h.Writes)
				add(h.CPU < 10*time.Minute && h.Busiest < time.Minute, goal, "%s of CPU, %s in the busiest minute", h.CPU.Round(time.Second), h.Busiest.Round(time.Second))
			}
		}
	}
	for _, f := range r.Flood {
		if f.Recorder == bench.Ours {
			where := "a flood of writes"
			if f.Full > 0 {
				where += ", with a table full of running series"
			}
			add(f.P999.Max < 1e6, "`Eventf` during "+where+": less than 1 ms for 99.9 % of the calls", "%s at most", nanoseconds(f.P999.Max))
		}
	}
	serverGoals(r, add, because)
	return all
}

// firstEvent returns the goals for events without a series. The first recorder is ours.
func firstEvent(what string, costs bench.Costs) []goal {
	ours, peers := costs[0], costs[1:]
	closest, allocs, bytes := peers[0].Ratio.Median, peers[0].Allocs, peers[0].Bytes
	for _, p := range peers {
		closest, allocs, bytes = min(closest, p.Ratio.Median), min(allocs, p.Allocs), min(bytes, p.Bytes)
	}
	return []goal{
		{what + ": at most the CPU of the better peer", fmt.Sprintf("%.2f times", 1/closest), closest >= 1},
		{what + ": at most the allocations of the better peer", fmt.Sprintf("%.1f and %.1f", ours.Allocs, allocs), ours.Allocs <= allocs},
		{what + ": at most the allocated bytes of the better peer", fmt.Sprintf("%.0f and %.0f", ours.Bytes, bytes), ours.Bytes <= bytes},
	}
}

// began describes how the series of a simulation began.
func began(s bench.Simulation) string {
	if s.Rebuilt {
		return "after a restart"
	}
	return "after a start"
}

// form describes the objects of a measurement.
func form(h bench.Hot) string {
	if h.Related {
		return h.Form + " with a related object"
	}
	return h.Form
}
