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

type rules struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
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
	err := e.Encode(rules{[]group{g}})
	return b.Bytes(), err
}
