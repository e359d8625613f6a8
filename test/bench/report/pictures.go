package main

import (
	"fmt"
	"image/color"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

// colors are the colors of the recorders in all pictures.
var colors = map[string]color.Color{
	bench.Ours:       chart.Blue,
	bench.ToolsNew:   chart.Orange,
	bench.ToolsOld:   chart.Grey,
	bench.Floor:      chart.Green,
	bench.FloorClock: chart.Green,
}

// pictures draws the parts that have results. The keys are paths below docs.
func pictures(r *bench.Results) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, p := range []struct {
		name     string
		measured bool
		height   float64
		draw     func(*bench.Results) chart.Chart
	}{
		{"occurrence", len(r.Hot) > 0, 230, occurrencePicture},
		{"loop", len(r.Loop) > 0, chart.Height, loopPicture},
		{"hour", len(r.Loop) > 0, 260, hourPicture},
		{"heap", len(r.Heap) > 0, chart.Height, heapPicture},
		{"writes", len(r.Simulation) > 0, chart.Height, writesPicture},
	} {
		if !p.measured {
			continue
		}
		svg, err := chart.SVG(p.draw(r), chart.Width, p.height)
		if err != nil {
			return nil, fmt.Errorf("picture %s: %w", p.name, err)
		}
		files["benchmarks/"+p.name+".svg"] = svg
	}
	return files, nil
}

func occurrencePicture(r *bench.Results) chart.Chart {
	bars := &chart.Bars{
		Title:    "CPU for one more occurrence of a series",
		Subtitle: "Typed object, one goroutine, including asynchronous work. Logarithmic.",
		Axis:     chart.Axis{Label: "nanoseconds", Log: true, Format: chart.SI},
	}
	for _, name := range []string{bench.Floor, bench.FloorClock, bench.Ours, bench.ToolsNew, bench.ToolsOld} {
		if c := r.Hot[0].Costs.Of(name); c != nil { // the form "typed"
			bars.Bars = append(bars.Bars, chart.Bar{
				Name: title(name), Color: colors[name], Label: nanoseconds(c.CPU.Median),
				Value: c.CPU.Median, Low: c.CPU.Min, High: c.CPU.Max,
			})
		}
	}
	return bars
}

func loopPicture(r *bench.Results) chart.Chart {
	lines := &chart.Lines{
		Title:    "API requests of a hot loop over two hours",
		Subtitle: "One event about one object, every second. Logarithmic.",
		X:        chart.Axis{Label: "minutes", Step: 15},
		Y:        chart.Axis{Label: "API requests so far", Log: true},
	}
	for _, l := range r.Loop {
		name := title(l.Recorder)
		if l.Updated {
			if l.Recorder != bench.ToolsNew {
				continue // no difference for the others
			}
			name += ", object updated"
		}
		line := chart.Line{Name: name, Color: colors[l.Recorder], Step: true}
		if l.Updated {
			line.Color = chart.Red
		}
		for minute, n := range l.Sent {
			line.Points = append(line.Points, chart.Point{X: float64(minute), Y: float64(n)})
		}
		lines.Lines = append(lines.Lines, line)
	}
	return lines
}

func heapPicture(r *bench.Results) chart.Chart {
	lines := &chart.Lines{
		Title:    "Heap of a running series",
		Subtitle: "All memory of the recorder, including deadlines and names.",
		X:        chart.Axis{Label: "series (logarithmic)", Log: true, Format: chart.SI},
		Y:        chart.Axis{Label: "bytes per series"},
	}
	for _, recorder := range []string{bench.Ours, bench.ToolsNew} {
		shared := chart.Line{Name: title(recorder), Color: colors[recorder], Dots: true}
		held := chart.Line{Name: "with its strings", Color: colors[recorder], Dots: true, Dashed: true}
		for _, h := range r.Heap {
			if h.Recorder == recorder {
				shared.Points = append(shared.Points, chart.Point{X: float64(h.Series), Y: h.Shared})
				held.Points = append(held.Points, chart.Point{X: float64(h.Series), Y: h.Held})
			}
		}
		lines.Lines = append(lines.Lines, shared, held)
	}
	return lines
}

// pictured is the number of series in the picture of writes.
const pictured = 100_000

func writesPicture(r *bench.Results) chart.Chart {
	lines := &chart.Lines{
		Title:    fmt.Sprintf("Writes in each minute for %s series", count(pictured)),
		Subtitle: "All series begin within a minute. The beginning with its creates is omitted. Virtual time.",
		X:        chart.Axis{Label: "minutes since the start or restart", Step: 30},
		Y:        chart.Axis{Label: "writes"},
	}
	for _, s := range r.Simulation {
		if s.Series != pictured {
			continue
		}
		line := chart.Line{Name: "after a start", Color: chart.Blue, Step: true}
		if s.Rebuilt {
			line.Name, line.Color = "after a restart", chart.Orange
		} else {
			lines.Lines = append(lines.Lines, chart.Line{
				Name: "1.5 × mean", Color: chart.Grey, Dashed: true,
				Points: []chart.Point{{X: 0, Y: 1.5 * s.Mean}, {X: float64(len(s.Writes)), Y: 1.5 * s.Mean}},
			})
		}
		for minute, n := range s.Writes {
			if minute >= s.Beginning {
				line.Points = append(line.Points, chart.Point{X: float64(minute), Y: float64(n)})
			}
		}
		lines.Lines = append(lines.Lines, line)
	}
	return lines
}
