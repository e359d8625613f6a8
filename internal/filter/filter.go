// Package filter parses the field selectors of a filter of events, and matches keys with them.
package filter

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/eventseries/eventseries/series"
)

// Selectors are lists of requirements, of which a key must meet at least one. Without a list,
// they match every key. They never change.
type Selectors []fields.Requirements

// names are the fields that selectors can contain.
var names = []string{"action", "reason", "regarding.kind", "regarding.namespace", "related.kind", "reportingController", "type"}

// valueOf returns the value of one of the fields. A table of functions would put the key of
// each occurrence on the heap.
func valueOf(field string, k *series.Key) string {
	switch field {
	case "action":
		return k.Action
	case "reason":
		return k.Reason
	case "regarding.kind":
		return k.Regarding.Kind
	case "regarding.namespace":
		return k.Regarding.Namespace
	case "related.kind":
		return k.Related.Kind
	case "reportingController":
		return k.ReportingController
	default:
		return k.Type
	}
}

// Match reports whether k meets all requirements of a list, or there is no list. It does not
// allocate.
func (s Selectors) Match(k *series.Key) bool {
	return len(s) == 0 || slices.ContainsFunc(s, func(all fields.Requirements) bool {
		for _, r := range all {
			if (valueOf(r.Field, k) == r.Value) == excludes(r) {
				return false
			}
		}
		return true
	})
}

func excludes(r fields.Requirement) bool { return r.Operator == selection.NotEquals }

// Parse parses a text with a field selector in each line. It ignores spaces around
// requirements, empty lines, and lines that begin with #. Errors contain the number of the line
// and the value.
func Parse(text string) (Selectors, error) {
	var parsed Selectors
	type exclusion struct {
		line  int
		value string
	}
	excluding := make(map[string]exclusion) // the lines with nothing else, by field
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		all, err := parseLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if only := all[0]; len(all) == 1 && excludes(only) {
			if other, ok := excluding[only.Field]; ok && other.value != only.Value {
				return nil, fmt.Errorf("line %d: with line %d, %q selects every event: write both in one line, with a comma between them", i+1, other.line, line)
			}
			excluding[only.Field] = exclusion{i + 1, only.Value}
		}
		parsed = append(parsed, all)
	}
	return parsed, nil
}

// parseLine returns at least one requirement.
func parseLine(line string) (fields.Requirements, error) {
	selector, err := fields.ParseSelector(line)
	if err != nil {
		return nil, fmt.Errorf("%w: want a field, =, ==, or !=, and a value in which commas, equals signs, and backslashes have a backslash before them", err)
	}
	selector, err = selector.Transform(parseTerm)
	switch {
	case err != nil:
		return nil, err
	case selector.Empty():
		return nil, fmt.Errorf("no requirement in %q", line)
	}
	return selector.Requirements(), nil
}

// parseTerm returns the field and the value of a requirement without the spaces around them.
func parseTerm(field, value string) (string, string, error) {
	field, value = strings.TrimSpace(field), strings.TrimSpace(value)
	switch {
	case !slices.Contains(names, field):
		return "", "", fmt.Errorf("unknown field %q: want one of %s", field, strings.Join(names, ", "))
	case field == "type" && value != corev1.EventTypeNormal && value != corev1.EventTypeWarning:
		return "", "", fmt.Errorf("unknown type %q: want %s or %s", value, corev1.EventTypeNormal, corev1.EventTypeWarning)
	case len(value) > 1 && strings.IndexByte("\"'`", value[0]) >= 0 && value[0] == value[len(value)-1]:
		return "", "", fmt.Errorf("the value %s of %s is in quotes: want it without them", value, field)
	}
	return field, value, nil
}
