package monitoring

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"

	"github.com/eventseries/eventseries/test/internal/chart"
)

const (
	dashboardFile = "../../docs/monitoring/dashboard.json"
	pictureFile   = "../../docs/monitoring/chaos.svg"
)

var writePicture = flag.Bool("write", false, "write the picture into docs/monitoring")

// variables are the variables of the dashboard: labels of targets.
var variables = []string{"namespace", "job", "instance"}

// quiet are the panels with values that are 0 in a healthy process and in the recording.
var quiet = []string{"Dropped", "Omissions, and drops of watchers"}

// ofReasons are the panels with data of a broadcaster that counts by reason, and has a filter.
var ofReasons = []string{"Occurrences by reason", "Ongoing series by reason", "Filtered", "Reasons without a place"}

// panel is a panel of the dashboard.
type panel struct {
	ID          int
	Title       string
	Description string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat, RefID string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var file struct{ Panels []panel }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Panels)
	return file.Panels
}

func TestPanelsDoNotOverlap(t *testing.T) {
	const columns = 24 // of any Grafana dashboard
	taken := make(map[[2]int]int)
	ids := make(map[int]bool)
	for _, p := range panels(t) {
		assert.NotEmpty(t, p.Description, p.Title)
		assert.False(t, ids[p.ID], "duplicate ID %d", p.ID)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, columns)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Zero(t, taken[at], "panel %d covers panel %d", p.ID, taken[at])
				taken[at] = p.ID
			}
		}
	}
}

// Each query returns data for a real run. The data is not 0, unless it should be.
func TestQueriesReturnData(t *testing.T) {
	run, reasons := recordedRun(t), recordedReasons(t)
	for _, p := range panels(t) {
		r := run
		if slices.Contains(ofReasons, p.Title) {
			r = reasons
		}
		require.NotEmpty(t, p.Targets)
		for _, target := range p.Targets {
			t.Run(fmt.Sprintf("%s %s %s", p.Title, target.RefID, target.LegendFormat), func(t *testing.T) {
				matrix := r.evaluate(t, target.Expr)
				require.NotEmpty(t, matrix, target.Expr)
				expand(target.LegendFormat, func(label string) string {
					assert.NotEmpty(t, matrix[0].Metric.Get(label), "label of the legend")
					return ""
				})
				zero := !slices.ContainsFunc(matrix, func(series promql.Series) bool { return !isZero(series) })
				assert.True(t, slices.Contains(quiet, p.Title) || !zero, "always 0: %s", target.Expr)
			})
		}
	}
}

// Panels and alerts use all metrics, and no others.
func TestMetricsAreUsed(t *testing.T) {
	exists := make(map[string]bool)
	for _, s := range slices.Concat(recordedRun(t).samples, recordedReasons(t).samples) {
		exists[s.Metric.Get("__name__")] = true
	}
	used := make(map[string]bool)
	use := func(expression string, variables ...string) {
		t.Helper()
		expression = strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h").Replace(expression)
		parsed, err := expressions.ParseExpr(expression)
		require.NoError(t, err)
		for _, matchers := range parser.ExtractSelectors(parsed) {
			selected := make(map[string]string)
			for _, m := range matchers {
				selected[m.Name] = m.Value
			}
			name := selected["__name__"]
			assert.True(t, exists[name], "the recording has no %q: %s", name, expression)
			used[name] = true
			for _, v := range variables {
				assert.Equal(t, "$"+v, selected[v], expression)
			}
		}
	}
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			use(target.Expr, variables...)
		}
	}
	for _, rule := range alertRules(t) {
		use(rule.Expr)
	}
	for name := range exists {
		for _, part := range []string{"_sum", "_count"} { // of the histogram
			name = strings.TrimSuffix(name, "_seconds"+part)
		}
		assert.True(t, used[name] || used[name+"_seconds_bucket"], "unused metric %s", name)
	}
}

// The picture shows rows of the dashboard for the recording.
func TestPictureIsUpToDate(t *testing.T) {
	r := recordedRun(t)
	var rows [][]*plot.Plot
	for row := range slices.Chunk(panels(t)[6:14], 2) { // the first row shows single values
		rows = append(rows, []*plot.Plot{row[0].plot(t, r), row[1].plot(t, r)})
	}
	svg := chart.SVG(960, 900, rows...)
	if *writePicture {
		require.NoError(t, os.WriteFile(pictureFile, svg, 0o666))
	}
	got, err := os.ReadFile(pictureFile)
	require.NoError(t, err)
	assert.Equal(t, string(svg), string(got), "run make dashboard")
	assert.Less(t, len(svg), 150_000)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	for _, row := range rows {
		assert.Contains(t, string(svg), row[0].Title.Text)
		assert.Contains(t, string(svg), row[1].Title.Text)
	}
}

// axisLabels are labels for units of Grafana.
var axisLabels = map[string]string{
	"ops": "per second", "reqps": "per second", "short": "number", "s": "seconds", "percentunit": "%",
}

// plot returns the plot of a panel.
func (p *panel) plot(t *testing.T, r *recording) *plot.Plot {
	t.Helper()
	unit := p.FieldConfig.Defaults.Unit
	to := chart.New(p.Title, "seconds", axisLabels[unit])
	shown := 0
	for _, target := range p.Targets {
		expression := target.Expr
		if unit == "percentunit" {
			expression = "100 * " + expression
		}
		for _, series := range r.evaluate(t, expression) {
			if isZero(series) {
				continue
			}
			name := expand(target.LegendFormat, series.Metric.Get)
			require.NoError(t, chart.Add(to, r.segments(series, name, plotutil.DarkColors[shown])...))
			shown++
		}
	}
	require.Positive(t, shown, "%s: nothing to draw", p.Title)
	return to
}

// expand replaces the labels in a legend.
func expand(legend string, valueOf func(label string) string) string {
	return os.Expand(strings.NewReplacer("{{", "${", "}}", "}").Replace(legend), valueOf)
}

// segments returns the parts of a series between its gaps. One of them has the name.
func (r *recording) segments(series promql.Series, name string, c color.Color) []chart.Line {
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
		part.Points = append(part.Points, plotter.XY{X: float64(point.T-r.from.UnixMilli()) / 1000, Y: point.F})
	}
	return parts
}

// isZero reports whether a series contains no values but 0 and NaN.
func isZero(series promql.Series) bool {
	return !slices.ContainsFunc(series.Floats, func(point promql.FPoint) bool { return point.F != 0 && !math.IsNaN(point.F) })
}
