package monitoring

import (
	"bytes"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	alertsFile     = "../../docs/monitoring/alerts.yaml"
	alertTestsFile = "../../docs/monitoring/alerts_test.yaml"
	pageFile       = "../../docs/metrics.md"
)

// alertRules reads the alert rules as Prometheus does.
func alertRules(t *testing.T) (rules []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.UTF8Validation, expressions, slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			require.NotEmpty(t, r.Alert, "only alerts are supported")
			require.Zero(t, r.KeepFiringFor, "not supported")
			rules = append(rules, r)
		}
	}
	require.NotEmpty(t, rules)
	return rules
}

// ruleTests is a file of unit tests for `promtool test rules`. Fields that the tests do
// not need are not supported.
type ruleTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []ruleTest
}

type ruleTest struct {
	Name        string
	Interval    model.Duration
	InputSeries []struct{ Series, Values string } `yaml:"input_series"`
	Alerts      []struct {
		EvalTime model.Duration `yaml:"eval_time"`
		Alert    string         `yaml:"alertname"`
		Want     []firing       `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

// firing is a firing alert.
type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func readRuleTests(t *testing.T, text []byte) (tests ruleTests) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&tests))
	return tests
}

// run runs a test, and returns whether it passes. It reports failures to result.
func (test *ruleTest) run(t *testing.T, result assert.TestingT, rules []rulefmt.Rule, every time.Duration) bool {
	t.Helper()
	var input samples // starts at time zero
	for _, in := range test.InputSeries {
		metric, values, err := expressions.ParseSeriesDesc(in.Series + " " + in.Values)
		require.NoError(t, err)
		series := promql.Series{Metric: metric}
		for i, v := range values {
			if !v.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: int64(i) * time.Duration(test.Interval).Milliseconds(), F: v.Value})
			}
		}
		input = append(input, series)
	}
	e := newEngine(t, input, 5*time.Minute) // Prometheus' default
	passes := true
	for _, a := range test.Alerts {
		i := slices.IndexFunc(rules, func(r rulefmt.Rule) bool { return r.Alert == a.Alert })
		require.GreaterOrEqual(t, i, 0, "no alert %q", a.Alert)
		require.Zero(t, time.Duration(a.EvalTime)%every, "no evaluation at %v", a.EvalTime)
		got := alertsAt(t, e, rules[i], time.Duration(a.EvalTime), every)
		passes = assert.ElementsMatch(result, a.Want, got, "%s at %v", a.Alert, a.EvalTime) && passes
	}
	return passes
}

// alertsAt returns the alerts of a rule that fire after evaluations from zero to the
// given time. It replaces rules.AlertingRule of Prometheus, whose package has many
// dependencies.
func alertsAt(t *testing.T, e *engine, rule rulefmt.Rule, evalTime, every time.Duration) (all []firing) {
	t.Helper()
	active := make(map[uint64]time.Duration) // start by the hash of labels
	for at := time.Duration(0); at <= evalTime; at += every {
		vector, err := e.at(t.Context(), rule.Expr, time.UnixMilli(at.Milliseconds()))
		require.NoError(t, err)
		before := active
		active, all = make(map[uint64]time.Duration), nil
		for _, sample := range vector {
			hash := sample.Metric.Hash()
			since, ok := before[hash]
			if !ok {
				since = at
			}
			active[hash] = since
			if at-since >= time.Duration(rule.For) {
				all = append(all, firingOf(t, e, rule, sample, at))
			}
		}
	}
	return all
}

// firingOf expands the labels and annotations of an alert.
func firingOf(t *testing.T, e *engine, rule rulefmt.Rule, sample promql.Sample, at time.Duration) firing {
	t.Helper()
	data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
	expand := func(to, texts map[string]string) {
		const names = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
		for name, text := range texts {
			expander := template.NewTemplateExpander(t.Context(), names+text, rule.Alert, data, model.Time(at.Milliseconds()), e.at, &url.URL{}, nil)
			expanded, err := expander.Expand()
			require.NoError(t, err)
			to[name] = expanded
		}
	}
	f := firing{Labels: sample.Metric.Map(), Annotations: make(map[string]string)}
	delete(f.Labels, model.MetricNameLabel)
	expand(f.Labels, rule.Labels)
	expand(f.Annotations, rule.Annotations)
	return f
}

// TestAlerts runs the unit tests of the alerts, as `promtool test rules` does.
func TestAlerts(t *testing.T) {
	rules := alertRules(t)
	text, err := os.ReadFile(alertTestsFile)
	require.NoError(t, err)
	tests := readRuleTests(t, text)
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
			test.run(t, t, rules, time.Duration(tests.EvaluationInterval))
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
	const fires = "[{exp_labels: {x: y, severity: 3}, exp_annotations: {summary: y is 3}}]"
	const other = "[{exp_labels: {x: y, severity: 3}, exp_annotations: {summary: y is 4}}]"
	for name, tt := range map[string]struct {
		values, at, want string
		passes           bool
	}{
		"firing":                {"3 3 3", "2m", fires, true},
		"pending":               {"3 3 3", "1m", "[]", true},
		"pending again":         {"3 0 3 3", "3m", "[]", true},
		"resolved":              {"3 3 3 0", "3m", "[]", true},
		"unexpected":            {"3 3 3", "2m", "[]", false},
		"missing":               {"3 3 3", "1m", fires, false},
		"different annotations": {"3 3 3", "2m", other, false},
	} {
		tests := readRuleTests(t, []byte(`tests: [{interval: 1m, input_series: [{series: 'a{x="y"}', values: `+tt.values+`}], `+
			`alert_rule_test: [{alertname: TooMuch, eval_time: `+tt.at+`, exp_alerts: `+tt.want+`}]}]`))
		assert.Equal(t, tt.passes, tests.Tests[0].run(t, new(assert.CollectT), rules, time.Minute), name)
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

// compression is the ratio between a usual scrape interval, one minute, and that of
// recordings.
const compression = time.Minute / scrapeInterval

// The recorded runs trigger alerts, and have data for the conditions of all of them.
func TestAlertsOverRecording(t *testing.T) {
	run, reasons := recordedRun(t), recordedReasons(t)
	var fired []string
	for _, rule := range alertRules(t) {
		r := run
		if strings.Contains(rule.Expr, "eventseries_ongoing_series") {
			r = reasons
		}
		expression, err := expressions.ParseExpr("(" + rule.Expr + ")")
		require.NoError(t, err)
		parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
			if m, ok := node.(*parser.MatrixSelector); ok {
				m.Range /= compression
			}
			return nil
		})
		if len(r.evaluate(t, expression.String())) > 0 {
			fired = append(fired, rule.Alert)
		}
		require.True(t, removeConditions(expression), "no comparison in %s", expression)
		text := expression.String()
		// The run has no denied requests.
		if rule.Alert == "EventSeriesWritesForbidden" {
			text = strings.ReplaceAll(text, `outcome="denied"`, `outcome="troubled"`)
		}
		assert.NotEmpty(t, r.evaluate(t, text), "%s: %s", rule.Alert, text)
	}
	assert.Subset(t, fired, []string{"EventSeriesPaused", "EventSeriesWritesFailing", "EventSeriesReasonOngoing"})
}

// removeConditions replaces the comparisons in an expression by their left operands. It
// returns false if there are none.
func removeConditions(expression parser.Expr) (found bool) {
	operand := func(e parser.Expr) parser.Expr {
		if b, ok := e.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() {
			found = true
			return b.LHS
		}
		return e
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.ParenExpr:
			n.Expr = operand(n.Expr)
		case *parser.BinaryExpr:
			n.LHS, n.RHS = operand(n.LHS), operand(n.RHS)
		}
		return nil
	})
	return found
}
