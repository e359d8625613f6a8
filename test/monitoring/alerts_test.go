package monitoring

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fromRoot(name string) string { return filepath.Join("..", "..", filepath.FromSlash(name)) }

func alertRules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	rules, err := readRules(fromRoot(alertsFile))
	require.NoError(t, err)
	require.NotEmpty(t, rules)
	return rules
}

// The unit tests of the alerts, as `promtool test rules` has them.
func TestAlerts(t *testing.T) {
	rules := alertRules(t)
	tests, err := readRuleTests(fromRoot(alertTestsFile))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Base(alertsFile)}, tests.RuleFiles)
	fires, rests := make(map[string]bool), make(map[string]bool)
	for _, test := range tests.Tests {
		t.Run(test.Name, func(t *testing.T) {
			require.NotEmpty(t, test.Alerts)
			for i := range test.Alerts {
				a := &test.Alerts[i]
				fires[a.Alert] = fires[a.Alert] || len(a.Want) > 0
				rests[a.Alert] = rests[a.Alert] || len(a.Want) == 0
			}
			wrong, err := test.run(t.Context(), rules, time.Duration(tests.EvaluationInterval))
			require.NoError(t, err)
			assert.Empty(t, wrong, strings.Join(wrong, "\n"))
		})
	}
	for _, r := range rules {
		assert.True(t, fires[r.Alert], "there is no test in which %s fires", r.Alert)
		assert.True(t, rests[r.Alert], "there is no test in which %s does not fire", r.Alert)
	}
}

// What runs the tests above says so when they are wrong.
func TestRuleTestsThatFail(t *testing.T) {
	rules := []rulefmt.Rule{{
		Alert: "TooMuch", Expr: "a > 1", For: model.Duration(2 * time.Minute), Labels: map[string]string{"severity": "{{ $value }}"},
		Annotations: map[string]string{"summary": "{{ $labels.x }} is {{ $value }}"},
	}}
	run := func(values string, at time.Duration, want ...firing) []string {
		t.Helper()
		test := ruleTest{Interval: model.Duration(time.Minute), Alerts: []alertTest{{EvalTime: model.Duration(at), Alert: "TooMuch", Want: want}}}
		test.InputSeries = append(test.InputSeries, struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		}{`a{x="y"}`, values})
		wrong, err := test.run(t.Context(), rules, time.Minute)
		require.NoError(t, err)
		return wrong
	}
	fires := firing{Labels: map[string]string{"x": "y", "severity": "3"}, Annotations: map[string]string{"summary": "y is 3"}}
	assert.Empty(t, run("3 3 3", 2*time.Minute, fires))
	assert.Empty(t, run("3 3 3", time.Minute), "it is pending")
	assert.Empty(t, run("3 0 3 3", 3*time.Minute), "it has begun anew")
	assert.Empty(t, run("3 3 3 0", 3*time.Minute), "it is over")
	assert.NotEmpty(t, run("3 3 3", 2*time.Minute), "it fires")
	assert.NotEmpty(t, run("3 3 3", time.Minute, fires), "it does not fire")
	fires.Annotations["summary"] = "y is 4"
	assert.NotEmpty(t, run("3 3 3", 2*time.Minute, fires), "it says something else")
}

// Each alert says what to do.
func TestAlertsHaveRunbooks(t *testing.T) {
	page, err := os.ReadFile(fromRoot(pageFile))
	require.NoError(t, err)
	for _, r := range alertRules(t) {
		assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
		assert.NotEmpty(t, r.Annotations["description"], r.Alert)
		assert.Equal(t, "https://github.com/eventseries/eventseries/blob/main/docs/metrics.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		assert.Contains(t, string(page), "\n### "+r.Alert+"\n", "the runbook has no such place")
	}
}

// What happened in the recorded run is what the alerts are about.
func TestAlertsOverTheRecording(t *testing.T) {
	r, err := readRecording(fromRoot(recordingFile))
	require.NoError(t, err)
	e := r.engine()
	defer e.Close()
	over := func(expression string) promql.Matrix {
		t.Helper()
		matrix, err := e.over(t.Context(), expression, r.from, r.to, scrapeInterval)
		require.NoError(t, err)
		return matrix
	}
	happened := []string{"EventSeriesPaused", "EventSeriesWritesFailing"}
	var met []string
	for _, rule := range alertRules(t) {
		expression, err := compressed(rule.Expr)
		require.NoError(t, err)
		if len(over(expression)) > 0 {
			met = append(met, rule.Alert)
		}
		// Nobody is denied anything there, so there is nothing to be counted as that.
		if rule.Alert == "EventSeriesWritesForbidden" {
			expression = strings.ReplaceAll(expression, `outcome="denied"`, `outcome="troubled"`)
		}
		compared, err := unconditional(expression)
		require.NoError(t, err)
		assert.NotEmpty(t, over(compared), "%s: %s", rule.Alert, compared)
	}
	for _, name := range happened {
		assert.True(t, slices.Contains(met, name), "%s is not among %v", name, met)
	}
	t.Logf("met in the recording: %v", met)
}
