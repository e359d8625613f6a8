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

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

var colors = map[string]color.Color{bench.Ours: plotutil.DarkColors[2], bench.ToolsNew: plotutil.DarkColors[3], bench.ToolsOld: plotutil.DarkColors[4]}

// quarters labels every quarter of an hour, in minutes.
var quarters = plot.TickerFunc(func(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for minute := 15 * math.Ceil(low/15); minute <= high; minute += 15 {
		ticks = append(ticks, plot.Tick{Value: minute, Label: fmt.Sprint(minute)})
	}
	return ticks
})

// hourPicture shows the requests of a hot loop. The README contains it.
func hourPicture(r *bench.Results) ([]byte, error) {
	const minutes = 60
	p := chart.New("API requests of a hot loop in an hour\n(one event per second, the object changes each time)", "minutes", "requests so far (logarithmic)")
	chart.Log(&p.Y)
	p.X.Tick.Marker = quarters
	var lines []chart.Line
	for _, h := range r.Fleet {
		if h.Story != bench.HotLoop {
			continue
		}
		line, sent := chart.Line{Color: colors[h.Recorder]}, 0
		for minute := range minutes {
			if minute < len(h.Minutes) { // it ends with the last request
				sent += h.Minutes[minute]
			}
			line.Points = append(line.Points, plotter.XY{X: float64(minute + 1), Y: float64(sent)})
		}
		name := map[string]string{bench.ToolsNew: "client-go tools/events", bench.ToolsOld: "client-go tools/record"}[h.Recorder]
		line.Name = fmt.Sprintf("%s: %s", cmp.Or(name, h.Recorder), chart.Number(sent))
		lines = append(lines, line)
	}
	slices.SortFunc(lines, func(a, b chart.Line) int { return cmp.Compare(b.Points[minutes-1].Y, a.Points[minutes-1].Y) })
	if err := chart.Add(p, lines...); err != nil {
		return nil, fmt.Errorf("picture of a hot loop: %w", err)
	}
	return chart.SVG(760, 300, p), nil
}
