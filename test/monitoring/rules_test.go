package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"
)

// readRules reads alert rules as Prometheus does.
func readRules(path string) (rules []rulefmt.Rule, err error) {
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, expressions, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, fmt.Errorf("monitoring: rules: %w", errs[0])
	}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.KeepFiringFor != 0 {
				return nil, fmt.Errorf("monitoring: rules: unsupported rule %+v", r)
			}
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// firing is a firing alert.
type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// alertsAt returns the alerts of a rule that fire after evaluations from zero to the
// given time. It replaces rules.AlertingRule of Prometheus, whose package has many
// dependencies.
func alertsAt(ctx context.Context, e *engine, rule rulefmt.Rule, evalTime, every time.Duration) ([]firing, error) {
	active := make(map[uint64]time.Duration) // start by the hash of labels
	var all []firing
	for at := time.Duration(0); at <= evalTime; at += every {
		vector, err := e.at(ctx, rule.Expr, time.UnixMilli(at.Milliseconds()))
		if err != nil {
			return nil, err
		}
		before := active
		active, all = make(map[uint64]time.Duration), nil
		for _, sample := range vector {
			hash := sample.Metric.Hash()
			since, ok := before[hash]
			if !ok {
				since = at
			}
			active[hash] = since
			if at-since < time.Duration(rule.For) {
				continue
			}
			f, err := firingOf(ctx, e, rule, sample, at)
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	}
	return all, nil
}

// firingOf expands the labels and annotations of an alert.
func firingOf(ctx context.Context, e *engine, rule rulefmt.Rule, sample promql.Sample, at time.Duration) (firing, error) {
	data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
	expand := func(to, texts map[string]string) error {
		const names = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
		for name, text := range texts {
			var err error
			if to[name], err = template.NewTemplateExpander(ctx, names+text, rule.Alert, data, model.Time(at.Milliseconds()), e.at, &url.URL{}, nil).Expand(); err != nil {
				return err
			}
		}
		return nil
	}
	f := firing{Labels: sample.Metric.Map(), Annotations: make(map[string]string)}
	delete(f.Labels, model.MetricNameLabel)
	if err := expand(f.Labels, rule.Labels); err != nil {
		return f, err
	}
	return f, expand(f.Annotations, rule.Annotations)
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

func readRuleTests(path string) (*ruleTests, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	tests := &ruleTests{}
	if err := decoder.Decode(tests); err != nil {
		return nil, fmt.Errorf("monitoring: %s: %w", path, err)
	}
	return tests, nil
}

// input returns the time series of a test. They start at time zero.
func (t *ruleTest) input() (all samples, err error) {
	for _, in := range t.InputSeries {
		metric, values, err := expressions.ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			return nil, fmt.Errorf("monitoring: %s: %w", in.Series, err)
		}
		series := promql.Series{Metric: metric}
		for i, v := range values {
			if !v.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: int64(i) * time.Duration(t.Interval).Milliseconds(), F: v.Value})
			}
		}
		all = append(all, series)
	}
	return all, nil
}

// run runs a test and returns its failures.
func (t *ruleTest) run(ctx context.Context, rules []rulefmt.Rule, every time.Duration) (wrong []string, err error) {
	input, err := t.input()
	if err != nil {
		return nil, err
	}
	e := newEngine(input, 5*time.Minute) // Prometheus' default
	defer e.Close()
	for _, test := range t.Alerts {
		i := slices.IndexFunc(rules, func(r rulefmt.Rule) bool { return r.Alert == test.Alert })
		if i < 0 {
			return nil, fmt.Errorf("monitoring: no alert %q", test.Alert)
		}
		if time.Duration(test.EvalTime)%every != 0 {
			return nil, fmt.Errorf("monitoring: no evaluation at %v", test.EvalTime)
		}
		alerts, err := alertsAt(ctx, e, rules[i], time.Duration(test.EvalTime), every)
		if err != nil {
			return nil, err
		}
		if got, want := sorted(alerts), sorted(test.Want); !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("%s at %v:\n\tgot  %v\n\twant %v", test.Alert, test.EvalTime, got, want))
		}
	}
	return wrong, nil
}

func sorted(all []firing) (texts []string) {
	for _, f := range all {
		texts = append(texts, fmt.Sprint(f.Labels, f.Annotations))
	}
	slices.Sort(texts)
	return texts
}

// compressed divides the ranges in an expression by compression, to fit a recording.
func compressed(expression string) (string, error) {
	return rewrite(expression, func(node parser.Node) {
		if m, ok := node.(*parser.MatrixSelector); ok {
			m.Range /= compression
		}
	})
}

// unconditional replaces the comparisons in an expression by their left operands.
func unconditional(expression string) (string, error) {
	found := false
	operand := func(e parser.Expr) parser.Expr {
		if b, ok := e.(*parser.BinaryExpr); ok && b.Op.IsComparisonOperator() {
			found = true
			return b.LHS
		}
		return e
	}
	text, err := rewrite("("+expression+")", func(node parser.Node) {
		switch n := node.(type) {
		case *parser.ParenExpr:
			n.Expr = operand(n.Expr)
		case *parser.BinaryExpr:
			n.LHS, n.RHS = operand(n.LHS), operand(n.RHS)
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("monitoring: no comparison in %s", expression)
	}
	return text, err
}

// rewrite calls change for each node of an expression and returns the result.
func rewrite(expression string, change func(parser.Node)) (string, error) {
	parsed, err := expressions.ParseExpr(expression)
	if err != nil {
		return "", fmt.Errorf("monitoring: %s: %w", expression, err)
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		change(node)
		return nil
	})
	return parsed.String(), nil
}

// metricsOf returns the names of the metrics in an expression.
func metricsOf(expression string) (names []string, err error) {
	_, err = rewrite(expression, func(node parser.Node) {
		if v, ok := node.(*parser.VectorSelector); ok {
			for _, m := range v.LabelMatchers {
				if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
					names = append(names, m.Value)
				}
			}
		}
	})
	if len(names) == 0 && err == nil {
		err = fmt.Errorf("monitoring: no metric in %s", expression)
	}
	return names, err
}
