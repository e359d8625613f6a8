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
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"

	"github.com/eventseries/eventseries/test/internal/chart"
)

// pictured are the rows of the dashboard in the picture.
var pictured = rows[1:5]

// picture draws what the dashboard shows for a recording.
func picture(ctx context.Context, r *recording) ([]byte, error) {
	engine := r.engine()
	defer engine.Close()
	var plots [][]*plot.Plot
	for _, row := range pictured {
		var columns []*plot.Plot
		for _, p := range row {
			drawn, err := p.plot(ctx, r, engine)
			if err != nil {
				return nil, fmt.Errorf("monitoring: panel %q: %w", p.title, err)
			}
			columns = append(columns, drawn)
		}
		plots = append(plots, columns)
	}
	return chart.SVG(960, 900, plots...)
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

// plot returns the plot of a panel.
func (p *panel) plot(ctx context.Context, r *recording, e *engine) (*plot.Plot, error) {
	to := chart.New(p.title, "seconds", axisLabels[p.unit])
	shown := 0
	for _, q := range p.queries {
		matrix, err := r.evaluate(ctx, e, q.expression)
		if err != nil {
			return nil, err
		}
		for _, series := range matrix {
			if isZero(series) {
				continue
			}
			if err := chart.Add(to, r.segments(series, q.name(series), plotutil.DarkColors[shown], p.unit == "percentunit")...); err != nil {
				return nil, err
			}
			shown++
		}
	}
	if shown == 0 {
		return nil, errors.New("nothing to draw")
	}
	return to, nil
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

// segments returns the parts of a series between its gaps. One of them has the name.
func (r *recording) segments(series promql.Series, name string, c color.Color, percent bool) []chart.Line {
	scale := 1.0
	if percent {
		scale = 100
	}
	var parts []chart.Line
	last := int64(math.MinInt64)
	for _, point := range series.Floats {
		if math.IsNaN(point.F) || math.IsInf(point.F, 0) {
			continue
		}
		if len(parts) == 0 || point.T-last > scrapeInterval.Milliseconds() {
			parts = append(parts, chart.Line{Name: name, Color: c})
			name = ""
		}
		last = point.T
		part := &parts[len(parts)-1]
		part.Points = append(part.Points, plotter.XY{X: float64(point.T-r.from.UnixMilli()) / 1000, Y: scale * point.F})
	}
	return parts
}

// isZero reports whether a series contains no values but 0 and NaN.
func isZero(series promql.Series) bool {
	return !slices.ContainsFunc(series.Floats, func(point promql.FPoint) bool { return point.F != 0 && !math.IsNaN(point.F) })
}
