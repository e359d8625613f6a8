package monitoring

import (
	"encoding/json"
	"encoding/xml"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	dashboardFile  = "../../docs/monitoring/dashboard.json"
	pictureFile    = "../../docs/monitoring/chaos.svg"
	alertsFile     = "../../docs/monitoring/alerts.yaml"
	alertTestsFile = "../../docs/monitoring/alerts_test.yaml"
	pageFile       = "../../docs/metrics.md"
	recordingFile  = "testdata/chaos.om.gz"
)

var writeFiles = flag.Bool("write", false, "write the dashboard and the picture into docs/monitoring")

func recordedRun(t *testing.T) *recording {
	t.Helper()
	r, err := readRecording(recordingFile)
	require.NoError(t, err)
	return r
}

func TestDashboardIsUpToDate(t *testing.T) {
	want, err := dashboard()
	require.NoError(t, err)
	if *writeFiles {
		require.NoError(t, os.WriteFile(dashboardFile, want, 0o666))
	}
	got, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "run make dashboard")
}

// shownPanel is a panel in the dashboard file.
type shownPanel struct {
	ID      int
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ Expr, LegendFormat, RefID string }
}

func shownPanels(t *testing.T) []shownPanel {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var file struct{ Panels []shownPanel }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Panels)
	return file.Panels
}

func TestPanelsDoNotOverlap(t *testing.T) {
	taken := make(map[[2]int]int)
	ids := make(map[int]bool)
	for _, p := range shownPanels(t) {
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
	r := recordedRun(t)
	e := r.engine()
	defer e.Close()
	var all []panel
	for _, row := range rows {
		all = append(all, row...)
	}
	panels := shownPanels(t)
	require.Len(t, panels, len(all))
	for i, p := range panels {
		require.NotEmpty(t, p.Targets)
		for _, target := range p.Targets {
			t.Run(fmt.Sprintf("%s %s %s", p.Title, target.RefID, target.LegendFormat), func(t *testing.T) {
				matrix, err := r.evaluate(t.Context(), e, target.Expr)
				require.NoError(t, err)
				require.NotEmpty(t, matrix, target.Expr)
				for _, name := range reference.FindAllStringSubmatch(target.LegendFormat, -1) {
					assert.NotEmpty(t, matrix[0].Metric.Get(name[1]), "label of the legend")
				}
				zero := true
				for _, series := range matrix {
					zero = zero && isZero(series)
				}
				assert.True(t, all[i].quiet || !zero, "always 0: %s", target.Expr)
			})
		}
	}
}

// Panels and alerts use all metrics, and no others.
func TestMetricsAreUsed(t *testing.T) {
	r := recordedRun(t)
	exists := make(map[string]bool)
	for _, s := range r.samples {
		exists[s.Metric.Get("__name__")] = true
	}
	used := make(map[string]bool)
	use := func(expression string) {
		t.Helper()
		for _, name := range metricsOf(t, expression) {
			assert.True(t, exists[name], "the recording has no %s", name)
			used[name] = true
		}
	}
	for _, row := range rows {
		for _, p := range row {
			for _, q := range p.queries {
				use(r.resolve(q.expression))
			}
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

func TestRecordingIsSmallAndComplete(t *testing.T) {
	info, err := os.Stat(recordingFile)
	require.NoError(t, err)
	assert.Less(t, info.Size(), int64(300_000))
	r := recordedRun(t)
	assert.Greater(t, r.to.Sub(r.from).Seconds(), 60.0)
	instances := make(map[string]bool)
	for _, s := range r.samples {
		instances[s.Metric.Get("instance")] = true
	}
	assert.Greater(t, len(instances), 10)
}

func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"empty":                "# EOF\n",
		"no timestamp":         "# TYPE a gauge\na 1\n# EOF\n",
		"truncated":            "# TYPE a gauge\na 1 1\n",
		"decreasing timestamp": "# TYPE a gauge\na 1 2\na 1 1\n# EOF\n",
		"invalid":              "{\n",
	} {
		assert.Error(t, new(recording).parse([]byte(text)), name)
	}
	path := filepath.Join(t.TempDir(), "recording")
	_, err := readRecording(path)
	assert.Error(t, err, "the file does not exist")
	require.NoError(t, os.WriteFile(path, []byte("# EOF\n"), 0o600))
	_, err = readRecording(path)
	assert.Error(t, err, "the file is not compressed")

	r := new(recording)
	require.NoError(t, r.parse([]byte("# TYPE a gauge\na{x=\"y\"} 1 1\na{x=\"y\"} 2 3\na{x=\"z\"} 2 2\n# EOF\n")))
	assert.Len(t, r.samples, 2)
	assert.EqualValues(t, 1, r.from.Unix())
	assert.EqualValues(t, 3, r.to.Unix())
}

func TestPictureIsUpToDate(t *testing.T) {
	svg, err := picture(t.Context(), recordedRun(t))
	require.NoError(t, err)
	if *writeFiles {
		require.NoError(t, os.WriteFile(pictureFile, svg, 0o666))
	}
	got, err := os.ReadFile(pictureFile)
	require.NoError(t, err)
	assert.Equal(t, string(svg), string(got), "run make dashboard")
	assert.Less(t, len(svg), 150_000)
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
	for _, row := range pictured {
		for _, p := range row {
			assert.Contains(t, string(svg), p.title)
		}
	}
}
