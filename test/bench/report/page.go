package main

import (
	"bytes"
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

//go:embed *.tmpl
var pages embed.FS

var templates = template.Must(template.New("pages").Funcs(template.FuncMap{
	"ns":       nanoseconds,
	"bytes":    func(b float64) string { return fmt.Sprintf("%.0f", b) },
	"count":    chart.Number,
	"size":     func(n int64) string { return withUnit(float64(n), "B", "kB", "MB", "GB") },
	"duration": func(d time.Duration) string { return d.Round(time.Second).String() },
	"spread": func(s bench.Spread) string {
		return fmt.Sprintf("%s (%s–%s)", nanoseconds(s.Median), nanoseconds(s.Min), nanoseconds(s.Max))
	},
	"ratio": func(s bench.Spread) string {
		return fmt.Sprintf("%s (%s–%s)", times(s.Median), times(s.Min), times(s.Max))
	},
	"times": times,
	"over":  func(a, b float64) string { return times(a / b) },
	"share": func(h bench.Hour) string {
		return fmt.Sprintf("%.1f %%", 100*float64(h.Counted)/float64(h.Occurrences))
	},
	"goals": goals,
	"pods":  func(nodes int) int { return nodes * bench.PodsPerNode },
}).ParseFS(pages, "*.tmpl"))

// page returns the text of a page.
func page(name string, r *bench.Results) ([]byte, error) {
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, map[string]any{
		"R": r, "Ours": bench.Ours, "New": bench.ToolsNew, "Old": bench.ToolsOld, "Floor": bench.Floor,
	})
	return b.Bytes(), err
}

func nanoseconds(ns float64) string { return withUnit(ns, "ns", "µs", "ms", "s") }

// withUnit formats v, in the first of the units, with at least two digits.
func withUnit(v float64, units ...string) string {
	i := 0
	for ; v >= 1000 && i < len(units)-1; i++ {
		v /= 1000
	}
	if i > 0 && v < 10 {
		return fmt.Sprintf("%.1f %s", v, units[i])
	}
	return fmt.Sprintf("%.0f %s", v, units[i])
}

func times(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v < 10:
		return fmt.Sprintf("%.2f×", v)
	default:
		return fmt.Sprintf("%.0f×", v)
	}
}

// told are the results of a story, in the order of [bench.Recorders].
type told struct {
	Name string
	Rows []bench.Hour
}

// storiesOf groups results by their stories. It omits those that a recorder lacks.
func storiesOf(hours []bench.Hour) (all []told) {
	for _, h := range hours {
		if len(all) == 0 || all[len(all)-1].Name != h.Story {
			all = append(all, told{Name: h.Story})
		}
		all[len(all)-1].Rows = append(all[len(all)-1].Rows, h)
	}
	return slices.DeleteFunc(all, func(t told) bool { return len(t.Rows) < len(bench.Recorders) })
}

// goal is a performance goal and its measurement.
type goal struct {
	What     string
	Measured string
	Holds    bool
}

// goals returns the goals for which there are results.
func goals(r *bench.Results) (all []goal) {
	add := func(holds bool, what, measured string, args ...any) {
		all = append(all, goal{what, fmt.Sprintf(measured, args...), holds})
	}
	if len(r.Hot) > 0 {
		allocs := 0.0
		ratios := make(map[string][]float64)
		for _, h := range r.Hot {
			allocs = max(allocs, h.Costs.Of(bench.Ours).Allocs)
			for _, c := range h.Costs {
				ratios[c.Recorder] = append(ratios[c.Recorder], c.Ratio.Median)
			}
		}
		least := func(recorder string) float64 { return slices.Min(ratios[recorder]) }
		most := func(recorder string) float64 { return slices.Max(ratios[recorder]) }
		// One note in ten seconds is formatted, which allocates.
		add(allocs < 0.001, "An occurrence of a running series does not allocate", "%.3f allocations for any form of object", allocs)
		add(least(bench.ToolsNew) >= 20, "CPU per occurrence: at least 20 times less than `tools/events`", "%.1f to %.1f times", least(bench.ToolsNew), most(bench.ToolsNew))
		add(least(bench.ToolsOld) >= 100, "CPU per occurrence: at least 100 times less than `tools/record`", "%.0f to %.0f times", least(bench.ToolsOld), most(bench.ToolsOld))
		add(1/least(bench.Floor) <= 1.25, "CPU per occurrence: at most 1.25 times the floor with the time", "%.2f to %.2f times", 1/most(bench.Floor), 1/least(bench.Floor))
	}
	for _, p := range r.Parallel {
		if p.Recorder == bench.Ours {
			add(p.Same.Median >= 0.7, "Two goroutines with the same series: at least 0.7 times the throughput of one", "%.2f times", p.Same.Median)
		}
	}
	for _, h := range r.Heap {
		if h.Recorder == bench.Ours {
			add(h.Held-h.Strings <= 400, fmt.Sprintf("Heap for %s series: at most 400 bytes per series, without its strings", chart.Number(h.Series)),
				"%.0f bytes, and %.0f with the strings", h.Held-h.Strings, h.Held)
		}
	}
	if costs := r.Fresh.Costs; len(costs) > 0 {
		ours, peers := costs[0], costs[1:]
		cpu, allocs := min(peers[0].Ratio.Median, peers[1].Ratio.Median), min(peers[0].Allocs, peers[1].Allocs)
		add(cpu >= 1, "A first event: at most the CPU of the better peer", "%.2f times", 1/cpu)
		add(ours.Allocs <= allocs, "A first event: at most the allocations of the better peer", "%.1f and %.1f", ours.Allocs, allocs)
	}
	for _, s := range storiesOf(r.Server) {
		compared, holds := s.compare(measure{"CPU", cpuOf}, measure{"requests", requestsOf}, measure{"bytes written to etcd", writtenOf})
		add(holds, "The server, "+s.Name+": less than the better peer", "%s", compared)
	}
	for _, s := range storiesOf(r.Fleet) {
		if s.Name == bench.HotLoop {
			continue
		}
		ours := s.Rows[0]
		compared, holds := s.compare(measure{"requests", requestsOf})
		add(holds && ours.Lost() == 0 && (ours.Ratio() <= 3 || ours.Busiest <= ours.Emitted),
			"A large cluster, "+s.Name+": no loss, fewer requests, no bursts",
			"%d lost; %s; busiest second %s", ours.Lost(), compared, times(ours.Ratio()))
	}
	return all
}

// measure is a quantity of which less is better.
type measure struct {
	name string
	of   func(h bench.Hour) float64
}

func cpuOf(h bench.Hour) float64      { return h.CPU.Median }
func requestsOf(h bench.Hour) float64 { return float64(h.Total()) }
func writtenOf(h bench.Hour) float64  { return float64(h.Written) }

// compare compares this recorder with the better peer.
func (t told) compare(measures ...measure) (text string, less bool) {
	less = true
	var all []string
	for _, m := range measures {
		ratio := m.of(t.Rows[0]) / min(m.of(t.Rows[1]), m.of(t.Rows[2]))
		all = append(all, m.name+" "+times(ratio))
		less = less && ratio < 1
	}
	return strings.Join(all, "; "), less
}
