package monitoring

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql"

	"github.com/eventseries/eventseries/test/internal/chart"
)

// pictured are the rows of the dashboard that are in the picture.
var pictured = rows[1:5]

// Size of the picture, in points.
const (
	pictureWidth  = 900
	pictureHeight = 250*4 + 60
)

var colors = []color.Color{chart.Blue, chart.Orange, chart.Red, chart.Green, chart.Purple, chart.Grey}

// picture draws what the dashboard shows of a recording.
func picture(ctx context.Context, r *recording) ([]byte, error) {
	engine := r.engine()
	defer engine.Close()
	grid := &chart.Grid{
		Title: "What the dashboard shows of a run of the chaos test",
		Subtitle: fmt.Sprintf("%d processes within %.0f seconds, four at a time: they are stopped and killed, the API server, its etcd and the network fail, and the server pushes back.",
			len(r.instances()), r.to.Sub(r.from).Seconds()),
		Columns: 2,
	}
	for _, row := range pictured {
		for i := range row {
			lines, err := row[i].chart(ctx, r, engine)
			if err != nil {
				return nil, fmt.Errorf("monitoring: panel %q: %w", row[i].title, err)
			}
			grid.Charts = append(grid.Charts, lines)
		}
	}
	return chart.SVG(grid, pictureWidth, pictureHeight)
}

// instances returns the values of the label.
func (r *recording) instances() []string {
	var all []string
	for _, s := range r.samples {
		all = append(all, s.Metric.Get("instance"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// resolve puts into an expression of a panel what Grafana would: all of each variable,
// and for the intervals those that belong to a recording.
func (r *recording) resolve(expression string) string {
	pairs := []string{
		"$S", selection(),
		"$__rate_interval", (4 * scrapeInterval).String(), // as Grafana has it
		"$__range", fmt.Sprintf("%.0fs", r.to.Sub(r.from).Seconds()),
	}
	expression = strings.NewReplacer(pairs...).Replace(expression)
	for _, v := range variables {
		expression = strings.ReplaceAll(expression, "$"+v, ".*")
	}
	return expression
}

// evaluate returns what a query of a panel returns over a recording.
func (r *recording) evaluate(ctx context.Context, e *engine, q query) (promql.Matrix, error) {
	return e.over(ctx, r.resolve(q.expression), r.from.Add(scrapeInterval), r.to, scrapeInterval)
}

// chart returns what a panel shows.
func (p *panel) chart(ctx context.Context, r *recording, e *engine) (*chart.Lines, error) {
	unit := units[p.unit]
	lines := &chart.Lines{
		Title: p.title,
		X:     chart.Axis{Label: "seconds", Max: r.to.Sub(r.from).Seconds()},
		Y:     chart.Axis{Label: unit.label, Step: unit.step},
	}
	scale := max(unit.scale, 1)
	for _, q := range p.queries {
		matrix, err := r.evaluate(ctx, e, q)
		if err != nil {
			return nil, err
		}
		for _, series := range matrix {
			if constantlyZero(series) {
				continue
			}
			lines.Lines = append(lines.Lines, r.segments(series, q.name(series), colors[len(names(lines))%len(colors)], scale)...)
		}
	}
	if len(lines.Lines) == 0 {
		return nil, errors.New("nothing to draw")
	}
	return lines, nil
}

// units are those of Grafana that the panels have.
var units = map[string]struct {
	label       string
	scale, step float64
}{
	"ops": {label: "in a second"}, "reqps": {label: "in a second"}, "short": {label: "number"}, "s": {label: "seconds"},
	"percentunit": {label: "%", scale: 100, step: 20},
}

var reference = regexp.MustCompile(`\{\{(\w+)\}\}`)

// name returns the legend of one result.
func (q *query) name(series promql.Series) string {
	return reference.ReplaceAllStringFunc(q.legend, func(ref string) string {
		return series.Metric.Get(strings.Trim(ref, "{}"))
	})
}

// names returns the lines that have one.
func names(l *chart.Lines) (named []string) {
	for _, line := range l.Lines {
		if line.Name != "" {
			named = append(named, line.Name)
		}
	}
	return named
}

// segments returns the parts of a series between its gaps. The last has the name.
func (r *recording) segments(series promql.Series, name string, c color.Color, scale float64) []chart.Line {
	var parts []chart.Line
	last := int64(math.MinInt64)
	for _, point := range series.Floats {
		if math.IsNaN(point.F) || math.IsInf(point.F, 0) {
			continue
		}
		if len(parts) == 0 || point.T-last > scrapeInterval.Milliseconds() {
			parts = append(parts, chart.Line{Color: c})
		}
		last = point.T
		part := &parts[len(parts)-1]
		part.Points = append(part.Points, chart.Point{X: float64(point.T-r.from.UnixMilli()) / 1000, Y: scale * point.F})
	}
	if len(parts) > 0 {
		parts[len(parts)-1].Name = name
	}
	return parts
}

func constantlyZero(series promql.Series) bool {
	for _, point := range series.Floats {
		if point.F != 0 && !math.IsNaN(point.F) {
			return false
		}
	}
	return true
}
