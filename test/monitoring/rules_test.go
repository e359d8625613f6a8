package monitoring

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
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

// firing is a firing alert.
type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
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

// ruleTests is a file of unit tests for `promtool test rules`. Fields that the tests do
// not need are not supported.
type ruleTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []ruleTest     `yaml:"tests"`
}

type ruleTest struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []inputSeries  `yaml:"input_series"`
	Alerts      []alertTest    `yaml:"alert_rule_test"`
}

type inputSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

type alertTest struct {
	EvalTime model.Duration `yaml:"eval_time"`
	Alert    string         `yaml:"alertname"`
	Want     []firing       `yaml:"exp_alerts"`
}

func readRuleTests(t *testing.T) (tests ruleTests) {
	t.Helper()
	text, err := os.ReadFile(alertTestsFile)
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(&tests))
	return tests
}

// input returns the time series of a test. They start at time zero.
func (test *ruleTest) input(t *testing.T) (all samples) {
	t.Helper()
	for _, in := range test.InputSeries {
		metric, values, err := expressions.ParseSeriesDesc(in.Series + " " + in.Values)
		require.NoError(t, err)
		series := promql.Series{Metric: metric}
		for i, v := range values {
			if !v.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: int64(i) * time.Duration(test.Interval).Milliseconds(), F: v.Value})
			}
		}
		all = append(all, series)
	}
	return all
}

// run runs a test and returns its failures.
func (test *ruleTest) run(t *testing.T, rules []rulefmt.Rule, every time.Duration) (wrong []string) {
	t.Helper()
	e := newEngine(test.input(t), 5*time.Minute) // Prometheus' default
	defer e.Close()
	for _, a := range test.Alerts {
		i := slices.IndexFunc(rules, func(r rulefmt.Rule) bool { return r.Alert == a.Alert })
		require.GreaterOrEqual(t, i, 0, "no alert %q", a.Alert)
		require.Zero(t, time.Duration(a.EvalTime)%every, "no evaluation at %v", a.EvalTime)
		got, want := sorted(alertsAt(t, e, rules[i], time.Duration(a.EvalTime), every)), sorted(a.Want)
		if !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s at %v:\n\tgot  %v\n\twant %v", a.Alert, a.EvalTime, got, want))
		}
	}
	return wrong
}

func sorted(all []firing) (texts []string) {
	for _, f := range all {
		texts = append(texts, fmt.Sprint(f.Labels, f.Annotations))
	}
	slices.Sort(texts)
	return texts
}

// compressed divides the ranges in an expression by compression, to fit a recording.
func compressed(t *testing.T, expression string) string {
	t.Helper()
	return rewrite(t, expression, func(node parser.Node) {
		if m, ok := node.(*parser.MatrixSelector); ok {
			m.Range /= compression
		}
	})
}

// unconditional replaces the comparisons in an expression by their left operands.
func unconditional(t *testing.T, expression string) string {
	t.Helper()
	found := false
	operand := func(e parser.Expr) parser.Expr {
		if b, ok := e.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() {
			found = true
			return b.LHS
		}
		return e
	}
	text := rewrite(t, "("+expression+")", func(node parser.Node) {
		switch n := node.(type) {
		case *parser.ParenExpr:
			n.Expr = operand(n.Expr)
		case *parser.BinaryExpr:
			n.LHS, n.RHS = operand(n.LHS), operand(n.RHS)
		}
	})
	require.True(t, found, "no comparison in %s", expression)
	return text
}

// rewrite calls change for each node of an expression and returns the result.
func rewrite(t *testing.T, expression string, change func(parser.Node)) string {
	t.Helper()
	parsed, err := expressions.ParseExpr(expression)
	require.NoError(t, err)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		change(node)
		return nil
	})
	return parsed.String()
}

// metricsOf returns the names of the metrics in an expression.
func metricsOf(t *testing.T, expression string) (names []string) {
	t.Helper()
	parsed, err := expressions.ParseExpr(expression)
	require.NoError(t, err)
	for _, matchers := range parser.ExtractSelectors(parsed) {
		for _, m := range matchers {
			if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
				names = append(names, m.Value)
			}
		}
	}
	require.NotEmpty(t, names, expression)
	return names
}
