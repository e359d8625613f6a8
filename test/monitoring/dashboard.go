package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// variables of the dashboard, which are labels of targets. All of each are selected at
// first.
var variables = []string{"namespace", "job", "instance"}

// selection is what $S of a query stands for.
func selection() string {
	var parts []string
	for _, v := range variables {
		parts = append(parts, fmt.Sprintf(`%s=~"$%s"`, v, v))
	}
	return strings.Join(parts, ",")
}

// object is one of JSON. encoding/json sorts its keys, so that the result is always the
// same.
type object map[string]any

const (
	// Grafana divides a dashboard into 24 columns.
	columns    = 24
	statHeight = 4
	plotHeight = 8
)

// dashboard returns the dashboard, as Grafana imports it.
func dashboard() ([]byte, error) {
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	y := 0
	for _, row := range rows {
		height := 0
		for i, p := range row {
			width := columns / len(row)
			panel := p.json(source)
			panel["id"] = len(panels) + 1
			panel["gridPos"] = object{"x": i * width, "y": y, "w": width, "h": p.height()}
			panels = append(panels, panel)
			height = max(height, p.height())
		}
		y += height
	}
	list := []object{{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}}
	for i, v := range variables {
		// Each has the values that go with those before it.
		var before []string
		for _, b := range variables[:i] {
			before = append(before, fmt.Sprintf(`%s=~"$%s"`, b, b))
		}
		values := fmt.Sprintf("label_values(eventseries_occurrences_total{%s}, %s)", strings.Join(before, ","), v)
		list = append(list, object{
			"name": v, "type": "query", "datasource": source, "refresh": 2, "sort": 1,
			"query":      object{"query": values, "refId": v},
			"definition": values,
			"multi":      true, "includeAll": true, "allValue": ".*",
			"current": object{"text": "All", "value": "$__all"},
		})
	}
	return marshal(object{
		"title":         "Kubernetes events of controllers (eventseries)",
		"uid":           "eventseries",
		"tags":          []string{"kubernetes", "events", "eventseries"},
		"description":   "What recorders of github.com/eventseries/eventseries do. Written by `make dashboard`.",
		"schemaVersion": 39,
		"editable":      true,
		"graphTooltip":  1, // a cross-hair in all panels
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
}

func marshal(o object) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(o); err != nil {
		return nil, fmt.Errorf("monitoring: dashboard: %w", err)
	}
	return b.Bytes(), nil
}

func (p *panel) height() int {
	if p.stat {
		return statHeight
	}
	return plotHeight
}

// json returns a panel without its place.
func (p *panel) json(source object) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"datasource":   source,
			"refId":        string(rune('A' + i)),
			"expr":         strings.ReplaceAll(q.expression, "$S", selection()),
			"legendFormat": q.legend,
		})
	}
	o := object{"title": p.title, "description": p.description, "datasource": source, "targets": targets}
	if p.stat {
		o["type"] = "stat"
		o["fieldConfig"] = object{"defaults": object{"unit": p.unit, "min": 0}, "overrides": []object{}}
		o["options"] = object{"graphMode": "area", "colorMode": "none", "reduceOptions": object{"calcs": []string{"lastNotNull"}}}
		return o
	}
	o["type"] = "timeseries"
	o["fieldConfig"] = object{
		"defaults":  object{"unit": p.unit, "min": 0, "custom": object{"fillOpacity": 8, "lineWidth": 1, "showPoints": "never"}},
		"overrides": []object{},
	}
	o["options"] = object{
		"legend":  object{"displayMode": "list", "placement": "bottom"},
		"tooltip": object{"mode": "multi", "sort": "desc"},
	}
	return o
}
