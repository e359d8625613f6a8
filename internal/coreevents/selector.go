package coreevents

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// reportingComponent is what core/v1 calls the reporting controller.
const reportingComponent = "reportingComponent"

// coreSelector is a field selector of events.k8s.io/v1, for core/v1.
type coreSelector struct {
	server    fields.Selector // for servers of today
	oldServer fields.Selector // for those that cannot select by the reporter
	reporter  fields.Selector // what oldServer lacks
	reduced   bool            // whether it lacks something
}

// newCoreSelector translates a field selector. An empty one selects all. Names
// that core/v1 has not are left to the server, which says so.
func newCoreSelector(selector string) (coreSelector, error) {
	parsed, err := fields.ParseSelector(selector)
	if err == nil {
		parsed, err = parsed.Transform(func(field, value string) (string, string, error) {
			return coreField(field), value, nil
		})
	}
	if err != nil {
		return coreSelector{}, fmt.Errorf("coreevents: field selector %q: %w", selector, err)
	}
	s := coreSelector{server: parsed, oldServer: parsed, reporter: fields.Everything()}
	var others, reporters []fields.Selector
	for _, r := range parsed.Requirements() {
		term := fields.OneTermEqualSelector(r.Field, r.Value)
		if r.Operator == selection.NotEquals {
			term = fields.OneTermNotEqualSelector(r.Field, r.Value)
		}
		if r.Field == reportingComponent {
			reporters = append(reporters, term)
		} else {
			others = append(others, term)
		}
	}
	if len(reporters) > 0 {
		s.oldServer, s.reporter, s.reduced = fields.AndSelectors(others...), fields.AndSelectors(reporters...), true
	}
	return s, nil
}

// coreField returns the name that a field has in core/v1.
func coreField(field string) string {
	if field == "reportingController" {
		return reportingComponent
	}
	if of, ok := strings.CutPrefix(field, "regarding."); ok {
		return "involvedObject." + of
	}
	return field
}

// reporter returns the one field of an Event that is selected here.
func reporter(event *corev1.Event) fields.Set {
	return fields.Set{reportingComponent: event.ReportingController}
}
