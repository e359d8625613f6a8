package monitoring

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"
)

// readRules reads a file of rules as Prometheus does.
func readRules(path string) ([]rulefmt.Rule, error) {
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, expressions, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, fmt.Errorf("monitoring: rules: %w", errs[0])
	}
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	for _, r := range rules {
		if r.Alert == "" || r.KeepFiringFor != 0 {
			return nil, fmt.Errorf("monitoring: rules: %+v is more than the tests know", r)
		}
	}
	return rules, nil
}

// firing is an alert that fires.
type firing struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func (f firing) String() string { return fmt.Sprintf("%v %v", f.Labels, f.Annotations) }

// alert is a rule over time: Prometheus' rules.AlertingRule, without what the package
// of that has with it.
type alert struct {
	rulefmt.Rule
	active map[uint64]time.Time // since when, by the labels of the result
}

// evaluate returns what fires at a time. The times must not go back.
func (a *alert) evaluate(ctx context.Context, e *engine, at time.Time) ([]firing, error) {
	vector, err := e.at(ctx, a.Expr, at)
	if err != nil {
		return nil, err
	}
	before := a.active
	a.active = make(map[uint64]time.Time)
	var all []firing
	for _, sample := range vector {
		hash := sample.Metric.Hash()
		since, ok := before[hash]
		if !ok {
			since = at
		}
		a.active[hash] = since
		if at.Sub(since) < time.Duration(a.For) {
			continue
		}
		f, err := a.firing(ctx, e, sample, at)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// firing returns the alert of one result.
func (a *alert) firing(ctx context.Context, e *engine, sample promql.Sample, at time.Time) (firing, error) {
	result := sample.Metric.Map()
	data := template.AlertTemplateData(result, nil, "", sample)
	expand := func(text string) (string, error) {
		const names = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
		query := func(ctx context.Context, expression string, at time.Time) (promql.Vector, error) {
			return e.at(ctx, expression, at)
		}
		return template.NewTemplateExpander(ctx, names+text, a.Alert, data, model.TimeFromUnixNano(at.UnixNano()), query, &url.URL{}, nil).Expand()
	}
	f := firing{Labels: make(map[string]string), Annotations: make(map[string]string)}
	for name, value := range result {
		if name != model.MetricNameLabel {
			f.Labels[name] = value
		}
	}
	var err error
	for name, text := range a.Labels {
		if f.Labels[name], err = expand(text); err != nil {
			return firing{}, err
		}
	}
	for name, text := range a.Annotations {
		if f.Annotations[name], err = expand(text); err != nil {
			return firing{}, err
		}
	}
	return f, nil
}

// ruleTests is a file of unit tests, as `promtool test rules` reads it. What of that
// the tests here do not need makes an error.
type ruleTests struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []ruleTest     `yaml:"tests"`
}

type ruleTest struct {
	Name        string         `yaml:"name"`
	Interval    model.Duration `yaml:"interval"`
	InputSeries []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []alertTest `yaml:"alert_rule_test"`
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

// input returns the time series of a test, which begin at the time zero.
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

// run returns what is not as the test wants it.
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
			return nil, fmt.Errorf("monitoring: there is no alert %q", test.Alert)
		}
		if time.Duration(test.EvalTime)%every != 0 {
			return nil, fmt.Errorf("monitoring: nothing is evaluated at %v", test.EvalTime)
		}
		a := alert{Rule: rules[i]}
		var got []firing
		for at := time.Duration(0); at <= time.Duration(test.EvalTime); at += every {
			if got, err = a.evaluate(ctx, e, time.UnixMilli(at.Milliseconds())); err != nil {
				return nil, err
			}
		}
		if want := fmt.Sprint(sorted(test.Want)); fmt.Sprint(sorted(got)) != want {
			wrong = append(wrong, fmt.Sprintf("%s at %v:\n\tgot  %v\n\twant %s", test.Alert, test.EvalTime, sorted(got), want))
		}
	}
	return wrong, nil
}

func sorted(all []firing) (texts []string) {
	for _, f := range all {
		texts = append(texts, f.String())
	}
	slices.Sort(texts)
	return texts
}

// compressed returns an expression for a recording, in which everything goes faster:
// with ranges that are as much shorter.
func compressed(expression string) (string, error) {
	return rewritten(expression, func(node parser.Node) {
		if m, ok := node.(*parser.MatrixSelector); ok {
			m.Range /= compression
		}
	})
}

// unconditional returns an expression without its comparisons: what is compared.
func unconditional(expression string) (string, error) {
	compares := func(e parser.Expr) (parser.Expr, bool) {
		b, ok := e.(*parser.BinaryExpr)
		if ok && b.Op.IsComparisonOperator() {
			return b.LHS, true
		}
		return e, false
	}
	top, err := expressions.ParseExpr(expression)
	if err != nil {
		return "", err
	}
	if lhs, ok := compares(top); ok {
		return lhs.String(), nil
	}
	found := false
	text, err := rewritten(expression, func(node parser.Node) {
		if b, ok := node.(*parser.BinaryExpr); ok {
			var left, right bool
			b.LHS, left = compares(b.LHS)
			b.RHS, right = compares(b.RHS)
			found = found || left || right
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("monitoring: %s compares nothing", expression)
	}
	return text, err
}

// rewritten returns an expression after each of its nodes has been changed.
func rewritten(expression string, change func(parser.Node)) (string, error) {
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
	_, err = rewritten(expression, func(node parser.Node) {
		if v, ok := node.(*parser.VectorSelector); ok {
			for _, m := range v.LabelMatchers {
				if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
					names = append(names, m.Value)
				}
			}
		}
	})
	if len(names) == 0 && err == nil {
		err = fmt.Errorf("monitoring: %s is about no metric", strings.TrimSpace(expression))
	}
	return names, err
}
