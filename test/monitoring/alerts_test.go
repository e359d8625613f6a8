package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAlerts runs the unit tests of the alerts, as `promtool test rules` does.
func TestAlerts(t *testing.T) {
	rules := alertRules(t)
	tests := readRuleTests(t)
	assert.Equal(t, []string{filepath.Base(alertsFile)}, tests.RuleFiles)
	type outcome struct {
		alert string
		fires bool
	}
	tested := make(map[outcome]bool)
	for _, test := range tests.Tests {
		t.Run(test.Name, func(t *testing.T) {
			require.NotEmpty(t, test.Alerts)
			for _, a := range test.Alerts {
				tested[outcome{a.Alert, len(a.Want) > 0}] = true
			}
			wrong := test.run(t, rules, time.Duration(tests.EvaluationInterval))
			assert.Empty(t, wrong, strings.Join(wrong, "\n"))
		})
	}
	for _, r := range rules {
		for _, fires := range []bool{true, false} {
			assert.True(t, tested[outcome{r.Alert, fires}], "no test in which %s fires: %v", r.Alert, fires)
		}
	}
}

func TestRuleTestsDetectFailures(t *testing.T) {
	rules := []rulefmt.Rule{{
		Alert: "TooMuch", Expr: "a > 1", For: model.Duration(2 * time.Minute), Labels: map[string]string{"severity": "{{ $value }}"},
		Annotations: map[string]string{"summary": "{{ $labels.x }} is {{ $value }}"},
	}}
	fires := firing{Labels: map[string]string{"x": "y", "severity": "3"}, Annotations: map[string]string{"summary": "y is 3"}}
	other := firing{Labels: fires.Labels, Annotations: map[string]string{"summary": "y is 4"}}
	for name, tt := range map[string]struct {
		values string
		minute int
		want   []firing
		passes bool
	}{
		"firing":                {"3 3 3", 2, []firing{fires}, true},
		"pending":               {"3 3 3", 1, nil, true},
		"pending again":         {"3 0 3 3", 3, nil, true},
		"resolved":              {"3 3 3 0", 3, nil, true},
		"unexpected":            {"3 3 3", 2, nil, false},
		"missing":               {"3 3 3", 1, []firing{fires}, false},
		"different annotations": {"3 3 3", 2, []firing{other}, false},
	} {
		test := ruleTest{
			Interval: model.Duration(time.Minute), InputSeries: []inputSeries{{`a{x="y"}`, tt.values}},
			Alerts: []alertTest{{EvalTime: model.Duration(time.Duration(tt.minute) * time.Minute), Alert: "TooMuch", Want: tt.want}},
		}
		assert.Equal(t, tt.passes, len(test.run(t, rules, time.Minute)) == 0, name)
	}
}

func TestAlertsHaveRunbooks(t *testing.T) {
	page, err := os.ReadFile(pageFile)
	require.NoError(t, err)
	for _, r := range alertRules(t) {
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		assert.NotEmpty(t, r.Annotations["description"], r.Alert)
		assert.Equal(t, "https://github.com/eventseries/eventseries/blob/main/docs/metrics.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		assert.Contains(t, string(page), "\n### "+r.Alert+"\n", "no runbook")
	}
}

// The recorded run triggers alerts, and has data for the conditions of all of them.
func TestAlertsOverRecording(t *testing.T) {
	r := recordedRun(t)
	e := r.engine()
	defer e.Close()
	over := func(expression string) promql.Matrix {
		t.Helper()
		matrix, err := e.over(t.Context(), expression, r.from, r.to, scrapeInterval)
		require.NoError(t, err)
		return matrix
	}
	var fired []string
	for _, rule := range alertRules(t) {
		expression := compressed(t, rule.Expr)
		if len(over(expression)) > 0 {
			fired = append(fired, rule.Alert)
		}
		// The run has no denied requests.
		if rule.Alert == "EventSeriesWritesForbidden" {
			expression = strings.ReplaceAll(expression, `outcome="denied"`, `outcome="troubled"`)
		}
		compared := unconditional(t, expression)
		assert.NotEmpty(t, over(compared), "%s: %s", rule.Alert, compared)
	}
	assert.Subset(t, fired, []string{"EventSeriesPaused", "EventSeriesWritesFailing"})
}
