package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// variables are the variables of the dashboard: labels of targets.
var variables = []string{"namespace", "job", "instance"}

// selection returns label matchers for the given variables.
func selection(variables []string) string {
	var parts []string
	for _, v := range variables {
		parts = append(parts, fmt.Sprintf(`%s=~"$%s"`, v, v))
	}
	return strings.Join(parts, ",")
}

// object is a JSON object. Its encoding is sorted, and thus reproducible.
type object map[string]any

const (
	columns    = 24 // of any Grafana dashboard
	statHeight = 4
	plotHeight = 8
)

// dashboard returns the dashboard as JSON for import into Grafana.
func dashboard() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	y := 0
	for _, row := range rows {
		height := 0
		for i, p := range row {
			panel, h := p.json(source)
			width := columns / len(row)
			panel["id"] = len(panels) + 1
			panel["gridPos"] = object{"x": i * width, "y": y, "w": width, "h": h}
			panels = append(panels, panel)
			height = max(height, h)
		}
		y += height
	}
	list := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}
	for i, v := range variables {
		// The values of a variable depend on the variables before it.
		values := fmt.Sprintf("label_values(eventseries_occurrences_total{%s}, %s)", selection(variables[:i]), v)
		list = append(list, object{
			"name": v, "type": "query", "datasource": source, "refresh": 2, "sort": 1,
			"query":      object{"query": values, "refId": v},
			"definition": values,
			"multi":      true, "includeAll": true, "allValue": ".*",
			"current": object{"text": "All", "value": "$__all"},
		})
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"title":         "Kubernetes events of controllers (eventseries)",
		"uid":           "eventseries",
		"tags":          []string{"kubernetes", "events", "eventseries"},
		"description":   "What recorders of github.com/eventseries/eventseries do. Written by `make dashboard`.",
		"schemaVersion": 39,
		"editable":      true,
		"graphTooltip":  1, // a shared crosshair
		"refresh":       "30s",
		"time":          object{"from": "now-3h", "to": "now"},
		"timezone":      "browser",
		"templating":    object{"list": list},
		"panels":        panels,
		"links": []object{{
			"title": "What the metrics mean", "type": "link", "targetBlank": true,
			"url": "https://github.com/eventseries/eventseries/blob/main/docs/metrics.md",
		}},
	})
	return b.Bytes(), err
}

// json returns a panel without its position, and its height.
func (p *panel) json(source object) (o object, height int) {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"datasource":   source,
			"refId":        string(rune('A' + i)),
			"expr":         strings.ReplaceAll(q.expression, "$S", selection(variables)),
			"legendFormat": q.legend,
		})
	}
	defaults := object{"unit": p.unit, "min": 0}
	o = object{
		"title": p.title, "description": p.description, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
	}
	if p.stat {
		o["type"] = "stat"
		o["options"] = object{"graphMode": "area", "colorMode": "none", "reduceOptions": object{"calcs": []string{"lastNotNull"}}}
		return o, statHeight
	}
	o["type"] = "timeseries"
	defaults["custom"] = object{"fillOpacity": 8, "lineWidth": 1, "showPoints": "never"}
	o["options"] = object{
		"legend":  object{"displayMode": "list", "placement": "bottom"},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
	return o, plotHeight
}
