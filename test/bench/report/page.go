package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"reflect"
	"text/template"
	"time"

	"github.com/eventseries/eventseries/test/bench"
	"github.com/eventseries/eventseries/test/internal/chart"
)

//go:embed benchmarks.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("benchmarks.md").Funcs(template.FuncMap{
	"ns":    nanoseconds,
	"time":  func(d time.Duration) string { return nanoseconds(float64(d)) },
	"bytes": func(b float64) string { return fmt.Sprintf("%.0f", b) },
	"count": chart.Number,
	"size":  size,
	"body": func(n int) string {
		if n < 0 { // there is none
			return "–"
		}
		return fmt.Sprint(n)
	},
	// spread and ratio format a median with its range.
	"spread": func(s bench.Spread) string {
		return fmt.Sprintf("%s (%s–%s)", nanoseconds(s.Median), nanoseconds(s.Min), nanoseconds(s.Max))
	},
	"between": func(s bench.Spread) string { return nanoseconds(s.Min) + " to " + nanoseconds(s.Max) },
	"ratio":   ratio,
	"times":   func(a, b float64) string { return times(a / b) },
	"float": func(n any) float64 {
		if v := reflect.ValueOf(n); v.CanInt() {
			return float64(v.Int())
		}
		return float64(reflect.ValueOf(n).Uint())
	},
	"int64":    func(n int) int64 { return int64(n) },
	"per":      func(d time.Duration, n int64) string { return nanoseconds(float64(d) / float64(n)) },
	"each":     func(total int64, n int) string { return fmt.Sprintf("%.0f", float64(total)/float64(n)) },
	"title":    title,
	"story":    about,
	"began":    began,
	"duration": func(d time.Duration) string { return d.Round(time.Second).String() },
	"rate": func(s bench.Simulation) string {
		return chart.Number(int64(float64(s.Occurrences) / s.Duration.Seconds()))
	},
	"steadyWrites": func(s bench.Simulation) (n int64) {
		for _, writes := range s.Writes[s.Beginning:] {
			n += int64(writes)
		}
		return max(n, 1)
	},
}).Parse(pageText))

// page returns the text of benchmarks.md.
func page(r *bench.Results) ([]byte, error) {
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, map[string]any{
		"R":        r,
		"Goals":    goals(r),
		"Stories":  storyCosts(r),
		"Measures": measures,
		"Names":    map[string]string{"Ours": bench.Ours, "New": bench.ToolsNew, "Old": bench.ToolsOld, "Floor": bench.Floor, "FloorClock": bench.FloorClock},
	})
	return b.Bytes(), err
}

// title returns the name of a recorder in the documentation.
func title(recorder string) string {
	if recorder == bench.FloorClock {
		return "floor with the time"
	}
	return recorder
}

func nanoseconds(ns float64) string {
	return withUnit(ns, "ns", "µs", "ms", "s")
}

// size formats a number of bytes of any integer type.
func size(b any) string {
	var v float64
	_, _ = fmt.Sscan(fmt.Sprint(b), &v)
	return withUnit(v, "B", "kB", "MB", "GB")
}

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

func ratio(s bench.Spread) string {
	return fmt.Sprintf("%s (%s–%s)", times(s.Median), times(s.Min), times(s.Max))
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
