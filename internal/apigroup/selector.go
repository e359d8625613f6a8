package apigroup

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// reportingComponent is the name of reportingController in core/v1.
const reportingComponent = "reportingComponent"

// coreSelector is a field selector that has been translated from events.k8s.io/v1 to
// core/v1.
type coreSelector struct {
	server    fields.Selector
	oldServer fields.Selector // server without reportingComponent, for servers before Kubernetes 1.19
	reporter  fields.Selector // the requirements that oldServer lacks
	reduced   bool            // whether reporter has requirements
}

// newCoreSelector translates a field selector. An empty selector matches everything.
// newCoreSelector keeps names that core/v1 does not support, so that the server
// rejects them.
func newCoreSelector(selector string) (coreSelector, error) {
	parsed, err := fields.ParseSelector(selector)
	if err == nil {
		parsed, err = parsed.Transform(func(field, value string) (string, string, error) {
			return coreField(field), value, nil
		})
	}
	if err != nil {
		return coreSelector{}, fmt.Errorf("apigroup: field selector %q: %w", selector, err)
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

// coreField returns the name of a field in core/v1.
func coreField(field string) string {
	if field == "reportingController" {
		return reportingComponent
	}
	if subfield, ok := strings.CutPrefix(field, "regarding."); ok {
		return "involvedObject." + subfield
	}
	return field
}

// selects reports whether an Event of the controller meets coreSelector.reporter.
func (s *coreSelector) selects(controller string) bool {
	return s.reporter.Matches(fields.Set{reportingComponent: controller})
}
