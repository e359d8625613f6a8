package main

import (
	"fmt"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

// hourMinutes is the number of minutes in the picture of the README.
const hourMinutes = 60

// hourPicture shows the first hour of a hot loop that updates its object, with and
// without this recorder. The README shows it.
func hourPicture(r *bench.Results) chart.Chart {
	lines := &chart.Lines{
		Title:    "API requests of a hot loop in an hour",
		Subtitle: "One event per second about one object, whose status the controller updates each time.",
		X:        chart.Axis{Label: "minutes", Step: 10},
		Y:        chart.Axis{Label: "requests so far"},
	}
	names := map[string]string{bench.ToolsNew: "client-go tools/events", bench.Ours: "eventseries"}
	for _, l := range r.Loop {
		if !l.Updated || names[l.Recorder] == "" || len(l.Sent) <= hourMinutes {
			continue
		}
		line := chart.Line{
			Name:  fmt.Sprintf("%s: %d", names[l.Recorder], l.Sent[hourMinutes]),
			Color: colors[l.Recorder],
		}
		for minute, n := range l.Sent[:hourMinutes+1] {
			line.Points = append(line.Points, chart.Point{X: float64(minute), Y: float64(n)})
		}
		lines.Lines = append(lines.Lines, line)
	}
	return lines
}
