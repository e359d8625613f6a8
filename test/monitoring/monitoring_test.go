// Package monitoring tests the alert rules and the dashboard in docs/monitoring with
// promtool. It is a module of its own because of promtool's dependencies: the go command
// does not run promtool without a module, because Prometheus replaces some of them.
package monitoring

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

var docs = filepath.Join("..", "..", "docs")

// rules is a file of rules.
type rules struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert,omitempty"`
	Record      string            `yaml:"record,omitempty"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{docs}, elements...)...))
	require.NoError(t, err)
	return text
}

// promtool runs promtool without service discovery, most of whose packages need not be
// compiled then.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	args = append([]string{"run", "-tags=remove_all_sd", "github.com/prometheus/prometheus/cmd/promtool"}, args...)
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestAlerts(t *testing.T) {
	promtool(t, "test", "rules", filepath.Join(docs, "monitoring", "alerts_test.yaml"))
}

// There is a test in which an alert fires, and one in which it does not. Each alert has a
// runbook.
func TestAlertsAreTested(t *testing.T) {
	var alerts rules
	require.NoError(t, yaml.Unmarshal(read(t, "monitoring", "alerts.yaml"), &alerts))
	var tests struct {
		Tests []struct {
			Alerts []struct {
				Alert string `yaml:"alertname"`
				Want  []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	require.NoError(t, yaml.Unmarshal(read(t, "monitoring", "alerts_test.yaml"), &tests))
	tested := make(map[string][2]bool) // silent, and firing
	for _, test := range tests.Tests {
		for _, a := range test.Alerts {
			outcomes := tested[a.Alert]
			outcomes[min(len(a.Want), 1)] = true
			tested[a.Alert] = outcomes
		}
	}
	page := string(read(t, "oncall.md"))
	n := 0
	for _, group := range alerts.Groups {
		for _, r := range group.Rules {
			n++
			assert.Equal(t, [2]bool{true, true}, tested[r.Alert], "%s: no test in which it is silent, or fires", r.Alert)
			assert.NotEmpty(t, r.Annotations["summary"], r.Alert)
			assert.NotEmpty(t, r.Annotations["description"], r.Alert)
			assert.Equal(t, "https://github.com/eventseries/eventseries/blob/main/docs/oncall.md#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
			assert.Contains(t, page, "\n### "+r.Alert+"\n", "no runbook")
		}
	}
	assert.Positive(t, n)
}

// Prometheus can parse the queries of the dashboard, which select the targets by the
// variables. A test of the documentation compares the metrics in them with the code.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID                 int
			Title, Description string
			Targets            []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(read(t, "monitoring", "dashboard.json"), &dashboard))
	require.NotEmpty(t, dashboard.Panels)
	queries := group{Name: "dashboard"}
	ids := make(map[int]bool)
	for _, p := range dashboard.Panels {
		assert.NotEmpty(t, p.Description, p.Title)
		assert.NotEmpty(t, p.Targets, p.Title)
		assert.False(t, ids[p.ID], "two panels have the ID %d", p.ID)
		ids[p.ID] = true
		for _, target := range p.Targets {
			assert.Contains(t, target.Expr, `namespace=~"$namespace",job=~"$job",instance=~"$instance"}`, p.Title)
			expression := strings.NewReplacer("$__rate_interval", "4m", "$__range", "1h").Replace(target.Expr)
			queries.Rules = append(queries.Rules, rule{Record: "panel:query", Expr: expression})
		}
	}
	text, err := yaml.Marshal(rules{Groups: []group{queries}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	promtool(t, "check", "rules", "--lint=none", file)
}
