package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

var (
	red, green, blue, orange, purple = plotutil.DarkColors[0], plotutil.DarkColors[1], plotutil.DarkColors[2], plotutil.DarkColors[3], plotutil.DarkColors[4]

	// colors are the colors of the recorders in all pictures.
	colors = map[string]color.Color{
		bench.Ours: blue, bench.ToolsNew: orange, bench.ToolsOld: purple, bench.Floor: green, bench.FloorClock: green,
	}
)

// pictures draws the parts that have results. The keys are paths below docs.
func pictures(r *bench.Results) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, p := range []struct {
		name     string
		measured bool
		height   vg.Length
		draw     func(*bench.Results) (*plot.Plot, []chart.Line)
	}{
		{"occurrence", len(r.Hot) > 0, 230, occurrencePicture},
		{"hour", len(r.Loop) > 0, 300, hourPicture},
		{"loop", len(r.Loop) > 0, 300, loopPicture},
		{"heap", len(r.Heap) > 0, 300, heapPicture},
		{"writes", len(r.Simulation) > 0, 300, writesPicture},
	} {
		if !p.measured {
			continue
		}
		picture, lines := p.draw(r)
		if err := chart.Add(picture, lines...); err != nil {
			return nil, fmt.Errorf("picture %s: %w", p.name, err)
		}
		files["benchmarks/"+p.name+".svg"] = chart.SVG(760, p.height, []*plot.Plot{picture})
	}
	rows, err := serverPictures(r)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 {
		files["benchmarks/server.svg"] = chart.SVG(1000, 700, rows...)
	}
	return files, nil
}

// occurrencePicture shows the recorders with typed objects.
func occurrencePicture(r *bench.Results) (p *plot.Plot, lines []chart.Line) {
	costs := r.Hot[0].Costs
	origin := math.Pow10(int(math.Log10(costs.Of(bench.Floor).CPU.Median)))
	p = chart.New("CPU time of one more occurrence of a series (median)", "nanoseconds (logarithmic)", "")
	chart.Log(&p.X)
	var names []string
	for _, name := range []string{bench.ToolsOld, bench.ToolsNew, bench.Ours, bench.FloorClock, bench.Floor} {
		cpu, y := costs.Of(name).CPU.Median, float64(len(names))
		// Bar charts of gonum start at zero, which a logarithmic axis does not have.
		lines = append(lines, chart.Line{Color: colors[name], Width: 18, Points: plotter.XYs{{X: origin, Y: y}, {X: cpu, Y: y}}})
		names = append(names, title(name)+": "+nanoseconds(cpu))
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	return p, lines
}

// quarters labels every quarter of an hour, in minutes.
var quarters = plot.TickerFunc(func(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for minute := 15 * math.Ceil(low/15); minute <= high; minute += 15 {
		ticks = append(ticks, plot.Tick{Value: minute, Label: fmt.Sprint(minute)})
	}
	return ticks
})

// hourPicture shows a loop that updates its object. The README contains it.
func hourPicture(r *bench.Results) (p *plot.Plot, lines []chart.Line) {
	return requests(r, 60, "API requests of a hot loop in an hour\n(one event per second, the object changes each time)", func(l bench.Loop) chart.Line {
		line := chart.Line{Color: colors[l.Recorder]}
		if l.Updated {
			name := map[string]string{bench.ToolsNew: "client-go tools/events", bench.ToolsOld: "client-go tools/record"}[l.Recorder]
			line.Name = fmt.Sprintf("%s: %s", cmp.Or(name, l.Recorder), chart.Number(l.Sent[60]))
		}
		return line
	})
}

// loopPicture compares loops that update their object with loops that do not.
func loopPicture(r *bench.Results) (p *plot.Plot, lines []chart.Line) {
	return requests(r, 120, "API requests of a hot loop in two hours", func(l bench.Loop) chart.Line {
		switch {
		case !l.Updated:
			return chart.Line{Name: title(l.Recorder), Color: colors[l.Recorder]}
		case l.Recorder == bench.ToolsNew:
			return chart.Line{Name: title(l.Recorder) + ", object updated", Color: red}
		default:
			return chart.Line{} // no difference
		}
	})
}

// requests shows the loops for which style returns a name, in the order of their
// requests.
func requests(r *bench.Results, minutes int, title string, style func(bench.Loop) chart.Line) (p *plot.Plot, lines []chart.Line) {
	p = chart.New(title, "minutes", "requests so far (logarithmic)")
	chart.Log(&p.Y)
	p.X.Tick.Marker = quarters
	loops := slices.SortedStableFunc(slices.Values(r.Loop), func(a, b bench.Loop) int { return b.Sent[minutes] - a.Sent[minutes] })
	for _, l := range loops {
		line := style(l)
		if line.Name == "" {
			continue
		}
		for minute, n := range l.Sent[:minutes+1] {
			line.Points = append(line.Points, plotter.XY{X: float64(minute), Y: float64(n)})
		}
		lines = append(lines, line)
	}
	return p, lines
}

func heapPicture(r *bench.Results) (p *plot.Plot, lines []chart.Line) {
	p = chart.New("Heap of an ongoing series", "series (logarithmic)", "bytes per series")
	chart.Log(&p.X)
	for _, recorder := range []string{bench.ToolsNew, bench.Ours} {
		shared := chart.Line{Name: recorder, Color: colors[recorder]}
		held := chart.Line{Name: recorder + ", with its strings", Color: colors[recorder], Dashed: true}
		for _, h := range r.Heap {
			if h.Recorder == recorder {
				shared.Points = append(shared.Points, plotter.XY{X: float64(h.Series), Y: h.Shared})
				held.Points = append(held.Points, plotter.XY{X: float64(h.Series), Y: h.Held})
			}
		}
		lines = append(lines, held, shared)
	}
	return p, lines
}

// pictured is the number of series in the picture of writes.
const pictured = 100_000

func writesPicture(r *bench.Results) (p *plot.Plot, lines []chart.Line) {
	p = chart.New(fmt.Sprintf("Writes per minute for %s series", chart.Number(pictured)), "minutes since the start or restart", "writes")
	p.X.Tick.Marker = quarters
	for _, s := range r.Simulation {
		if s.Series != pictured {
			continue
		}
		line := chart.Line{Name: began(s), Color: blue, Step: true}
		if s.Rebuilt {
			line.Color = orange
		}
		for minute := s.Beginning; minute < len(s.Writes); minute++ {
			line.Points = append(line.Points, plotter.XY{X: float64(minute), Y: float64(s.Writes[minute])})
		}
		lines = append(lines, line)
		if !s.Rebuilt {
			limit := plotter.XYs{{X: 0, Y: 1.5 * s.Mean}, {X: float64(len(s.Writes)), Y: 1.5 * s.Mean}}
			lines = append(lines, chart.Line{Name: "1.5 × mean", Color: color.Gray{Y: 140}, Dashed: true, Points: limit})
		}
	}
	return p, lines
}
