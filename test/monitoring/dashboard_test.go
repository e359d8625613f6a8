package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown are the panels that are in the file.
type shown struct {
	ID      int
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat, RefID string }
}

func TestDashboardIsUpToDate(t *testing.T) {
	want, err := dashboard()
	require.NoError(t, err)
	got, err := os.ReadFile(fromRoot(dashboardFile))
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "make dashboard writes it")
}

func panelsOfTheFile(t *testing.T) []shown {
	t.Helper()
	text, err := os.ReadFile(fromRoot(dashboardFile))
	require.NoError(t, err)
	var file struct{ Panels []shown }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Panels)
	return file.Panels
}

// No panel covers another or sticks out.
func TestPanelsHaveTheirPlaces(t *testing.T) {
	taken := make(map[[2]int]int)
	ids := make(map[int]bool)
	for _, p := range panelsOfTheFile(t) {
		assert.False(t, ids[p.ID], "panel %d is there twice", p.ID)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, columns)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Zero(t, taken[at], "panel %d is over %d", p.ID, taken[at])
				taken[at] = p.ID
			}
		}
	}
}

// Each query of the file returns data of a real run; and but for what should be 0,
// something else than 0.
func TestQueriesOverTheRecording(t *testing.T) {
	r, err := readRecording(fromRoot(recordingFile))
	require.NoError(t, err)
	e := r.engine()
	defer e.Close()
	var all []panel
	for _, row := range rows {
		all = append(all, row...)
	}
	panels := panelsOfTheFile(t)
	require.Len(t, panels, len(all))
	for i, p := range panels {
		require.NotEmpty(t, p.Targets)
		for _, target := range p.Targets {
			t.Run(fmt.Sprintf("%s %s %s", p.Title, target.RefID, target.LegendFormat), func(t *testing.T) {
				matrix, err := r.evaluate(t.Context(), e, query{expression: target.Expr})
				require.NoError(t, err)
				require.NotEmpty(t, matrix, target.Expr)
				for _, name := range reference.FindAllStringSubmatch(target.LegendFormat, -1) {
					assert.NotEmpty(t, matrix[0].Metric.Get(name[1]), "the legend")
				}
				zero := true
				for _, series := range matrix {
					zero = zero && constantlyZero(series)
				}
				assert.True(t, all[i].quiet || !zero, "always 0: %s", target.Expr)
			})
		}
	}
}

// Nothing is selected by what is not there, and every metric is looked at, by a panel
// or an alert.
func TestMetricsThatAreLookedAt(t *testing.T) {
	r, err := readRecording(fromRoot(recordingFile))
	require.NoError(t, err)
	there := make(map[string]bool)
	for _, s := range r.samples {
		there[s.Metric.Get("__name__")] = true
	}
	looked := make(map[string]bool)
	look := func(expression string) {
		t.Helper()
		names, err := metricsOf(expression)
		require.NoError(t, err)
		for _, name := range names {
			assert.True(t, there[name], "%s is not in the recording", name)
			looked[name] = true
		}
	}
	for _, row := range rows {
		for _, p := range row {
			for _, q := range p.queries {
				look(r.resolve(q.expression))
			}
		}
	}
	for _, rule := range alertRules(t) {
		look(rule.Expr)
	}
	for name := range there {
		for _, part := range []string{"_sum", "_count"} { // of the histogram
			name = strings.TrimSuffix(name, "_seconds"+part)
		}
		assert.True(t, looked[name] || looked[name+"_seconds_bucket"], "nobody looks at %s", name)
	}
}
