package monitoring

import (
	"context"
	"errors"
	"fmt"
	"image/color"
	"math"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/promql"

	"github.com/eventseries/eventseries/test/internal/chart"
)

// pictured are the rows of the dashboard in the picture.
var pictured = rows[1:5]

// Size of the picture in points.
const (
	pictureWidth  = 900
	pictureHeight = 250*4 + 60
)

var colors = []color.Color{chart.Blue, chart.Orange, chart.Red, chart.Green, chart.Purple, chart.Grey}

// picture draws what the dashboard shows for a recording.
func picture(ctx context.Context, r *recording) ([]byte, error) {
	engine := r.engine()
	defer engine.Close()
	grid := &chart.Grid{
		Title: "What the dashboard shows of a run of the chaos test",
		Subtitle: fmt.Sprintf("%d processes in %.0f seconds, four at a time. They stop or are killed. The API server, its etcd and the network fail, and the server pushes back.",
			len(r.instances()), r.to.Sub(r.from).Seconds()),
		Columns: 2,
	}
	for _, row := range pictured {
		for _, p := range row {
			lines, err := p.chart(ctx, r, engine)
			if err != nil {
				return nil, fmt.Errorf("monitoring: panel %q: %w", p.title, err)
			}
			grid.Charts = append(grid.Charts, lines)
		}
	}
	return chart.SVG(grid, pictureWidth, pictureHeight)
}

// instances returns the set of instances in the recording.
func (r *recording) instances() map[string]bool {
	all := make(map[string]bool)
	for _, s := range r.samples {
		all[s.Metric.Get("instance")] = true
	}
	return all
}

// resolve replaces the variables in an expression like Grafana does: with all values,
// and with intervals that fit the recording.
func (r *recording) resolve(expression string) string {
	expression = strings.NewReplacer(
		"$S", selection(variables),
		"$__rate_interval", (4 * scrapeInterval).String(), // the ratio in Grafana
		"$__range", fmt.Sprintf("%.0fs", r.to.Sub(r.from).Seconds()),
	).Replace(expression)
	for _, v := range variables {
		expression = strings.ReplaceAll(expression, "$"+v, ".*")
	}
	return expression
}

// evaluate evaluates an expression of a panel over the recording.
func (r *recording) evaluate(ctx context.Context, e *engine, expression string) (promql.Matrix, error) {
	return e.over(ctx, r.resolve(expression), r.from.Add(scrapeInterval), r.to, scrapeInterval)
}

// chart returns a chart of a panel.
func (p *panel) chart(ctx context.Context, r *recording, e *engine) (*chart.Lines, error) {
	lines := &chart.Lines{
		Title: p.title,
		X:     chart.Axis{Label: "seconds", Max: r.to.Sub(r.from).Seconds()},
		Y:     chart.Axis{Label: axisLabels[p.unit]},
	}
	scale := 1.0
	if p.unit == "percentunit" {
		scale, lines.Y.Step = 100, 20
	}
	named := 0
	for _, q := range p.queries {
		matrix, err := r.evaluate(ctx, e, q.expression)
		if err != nil {
			return nil, err
		}
		for _, series := range matrix {
			if isZero(series) {
				continue
			}
			segments := r.segments(series, q.name(series), colors[named%len(colors)], scale)
			if len(segments) > 0 {
				named++
			}
			lines.Lines = append(lines.Lines, segments...)
		}
	}
	if len(lines.Lines) == 0 {
		return nil, errors.New("nothing to draw")
	}
	return lines, nil
}

// axisLabels are labels for units of Grafana.
var axisLabels = map[string]string{
	"ops": "per second", "reqps": "per second", "short": "number", "s": "seconds", "percentunit": "%",
}

// reference is a reference to a label in a legend.
var reference = regexp.MustCompile(`\{\{(\w+)\}\}`)

// name returns the legend of a series.
func (q *query) name(series promql.Series) string {
	return reference.ReplaceAllStringFunc(q.legend, func(ref string) string {
		return series.Metric.Get(strings.Trim(ref, "{}"))
	})
}

// segments returns the parts of a series between its gaps. The last part has the name.
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

// isZero reports whether all values of a series are 0 or NaN.
func isZero(series promql.Series) bool {
	for _, point := range series.Floats {
		if point.F != 0 && !math.IsNaN(point.F) {
			return false
		}
	}
	return true
}
