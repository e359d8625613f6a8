package catalog

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// metric is the number of Ongoing series of a broadcaster by controller, type, and reason.
const metric = "eventseries_ongoing_series"

type group struct {
	Name  string
	Rules []rule
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// Alerts returns a rule file of Prometheus with an alert for each constant reason of a
// Warning that recurs. The rules are a start: only a person knows which Warnings matter.
func (c *Catalog) Alerts() ([]byte, error) {
	kinds := map[string][]string{}
	for _, e := range c.Events {
		if !e.Variable && slices.Contains(e.Types, "Warning") {
			kinds[e.Reason] = append(kinds[e.Reason], e.Regarding...)
		}
	}
	g := group{Name: "events", Rules: []rule{}}
	for _, reason := range slices.Sorted(maps.Keys(kinds)) {
		about := strings.Join(unique(kinds[reason], strings.Compare), ", ")
		g.Rules = append(g.Rules, rule{
			Alert:       "Event" + reason,
			Expr:        fmt.Sprintf("%s{type=\"Warning\",reason=%q} > 0", metric, reason),
			For:         "15m",
			Labels:      map[string]string{"severity": "warning"},
			Annotations: map[string]string{"summary": fmt.Sprintf("The Warning %s recurs (%s).", reason, strings.ReplaceAll(about, Any, "any kind"))},
		})
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(map[string][]group{"groups": {g}})
	return b.Bytes(), err
}
