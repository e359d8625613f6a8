package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/eventseries/eventseries/test/bench"
)

//go:embed benchmarks.md.tmpl
var pageText string

var pageTemplate = template.Must(template.New("benchmarks.md").Funcs(template.FuncMap{
	"ns":       nanoseconds,
	"time":     rounded,
	"spread":   spread,
	"ratio":    ratio,
	"times":    times,
	"per":      func(d time.Duration, n int64) string { return nanoseconds(float64(d) / float64(n)) },
	"over":     func(a, b float64) float64 { return a / b },
	"float":    func(n int) float64 { return float64(n) },
	"count":    count,
	"bytes":    func(b float64) string { return fmt.Sprintf("%.0f", b) },
	"size":     size,
	"each":     func(total int64, n int) string { return fmt.Sprintf("%.0f", float64(total)/float64(n)) },
	"title":    title,
	"cost":     cost,
	"hot":      hot,
	"oneCost":  func(costs []bench.Cost, name string) *bench.Cost { return cost(&bench.Hot{Costs: costs}, name) },
	"began":    began,
	"body":     body,
	"duration": func(d time.Duration) string { return d.Round(time.Second).String() },
	"rate":     func(s bench.Simulation) string { return count(int64(float64(s.Occurrences) / s.Duration.Seconds())) },
	"perWrite": perWrite,
}).Parse(pageText))

// page returns the text of benchmarks.md.
func page(r *bench.Results) ([]byte, error) {
	type run struct {
		Part string
		bench.Run
	}
	var runs []run
	for part, r := range r.Runs {
		runs = append(runs, run{part, r})
	}
	slices.SortFunc(runs, func(a, b run) int { return strings.Compare(a.Part, b.Part) })
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, map[string]any{
		"R":     r,
		"Goals": goals(r),
		"Runs":  runs,
		"Names": map[string]string{"Ours": bench.Ours, "New": bench.ToolsNew, "Old": bench.ToolsOld, "Floor": bench.Floor, "FloorClock": bench.FloorClock},
	})
	return b.Bytes(), err
}

// title is how a recorder is called in the documentation.
func title(recorder string) string {
	switch recorder {
	case bench.FloorClock:
		return "floor with the time"
	default:
		return recorder
	}
}

// nanoseconds writes a time of so many.
func nanoseconds(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return significant(ns/1e3) + " µs"
	case ns < 1e9:
		return significant(ns/1e6) + " ms"
	default:
		return significant(ns/1e9) + " s"
	}
}

func rounded(d time.Duration) string { return nanoseconds(float64(d)) }

// significant writes a number with two digits at least.
func significant(v float64) string {
	if v < 10 {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// spread writes a number of nanoseconds and its range.
func spread(s bench.Spread) string {
	return fmt.Sprintf("%s (%s–%s)", nanoseconds(s.Median), nanoseconds(s.Min), nanoseconds(s.Max))
}

// ratio writes how many times something is, and its range.
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

// count writes a whole number, of whatever type, with commas.
func count(n any) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// size writes so many bytes, an integer of whatever type.
func size(b any) string {
	v, err := strconv.ParseFloat(fmt.Sprint(b), 64)
	switch {
	case err != nil:
		return fmt.Sprint(b)
	case v < 1e6:
		return fmt.Sprintf("%.0f kB", v/1e3)
	case v < 1e9:
		return fmt.Sprintf("%.0f MB", v/1e6)
	default:
		return fmt.Sprintf("%.1f GB", v/1e9)
	}
}

// body writes the size of a request's body, which may be none.
func body(n int) string {
	if n < 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

// perWrite is what a simulation spent on other things than Eventf, for each write.
func perWrite(s bench.Simulation) string {
	writes := 0
	for _, n := range s.Writes[s.Beginning:] {
		writes += n
	}
	return nanoseconds(float64(s.Between) / float64(max(writes, 1)))
}
