package fakeapi

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The length limits of kube-apiserver in bytes, from its
// pkg/apis/core/validation/events.go.
const (
	maxReason   = 128
	maxAction   = 128
	maxInstance = 128
	maxNote     = 1024
)

// ValidateCreate returns the errors for which kube-apiserver v1.36 refuses to create an
// Event through events.k8s.io/v1 (ValidateEventCreate in its
// pkg/apis/core/validation). If there are none, the server creates the Event, provided
// that its namespace exists and the client may create Events there.
//
// kube-apiserver reports some fields under their names in core/v1: "message" for note,
// and "involvedObject.namespace" for regarding.namespace.
func ValidateCreate(event *eventsv1.Event) (errs field.ErrorList) {
	if event.Name == "" && event.GenerateName != "" {
		named := *event
		named.Name = generateName(event, 0) // the server generates the name first
		event = &named
	}
	errs = append(errs, validateEvent(event)...)
	errs = append(errs, apivalidation.ValidateObjectMeta(&event.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, validateSeries(event)...)
	if event.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if event.Type != corev1.EventTypeNormal && event.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), event.Type, "must be Normal or Warning"))
	}
	// Recorders for core/v1 set these fields; events.k8s.io/v1 rejects them.
	const unset = "must not be set"
	if t := event.DeprecatedFirstTimestamp; !t.IsZero() {
		errs = append(errs, field.Invalid(field.NewPath("deprecatedFirstTimestamp"), t.String(), unset))
	}
	if t := event.DeprecatedLastTimestamp; !t.IsZero() {
		errs = append(errs, field.Invalid(field.NewPath("deprecatedLastTimestamp"), t.String(), unset))
	}
	if n := event.DeprecatedCount; n != 0 {
		errs = append(errs, field.Invalid(field.NewPath("deprecatedCount"), n, unset))
	}
	if s := event.DeprecatedSource; s != (corev1.EventSource{}) {
		errs = append(errs, field.Invalid(field.NewPath("deprecatedSource"), s.Component+s.Host, unset))
	}
	return errs
}

// validateUpdate returns the errors for which kube-apiserver refuses to replace old with
// event. Only metadata and series may change.
func validateUpdate(event, old *eventsv1.Event) (errs field.ErrorList) {
	errs = append(errs, validateEvent(event)...)
	errs = append(errs, apivalidation.ValidateObjectMetaUpdate(&event.ObjectMeta, &old.ObjectMeta, field.NewPath("metadata"))...)
	if !equalSeries(event.Series, old.Series) {
		errs = append(errs, validateSeries(event)...)
	}
	for _, f := range []struct {
		name     string
		now, was any
	}{
		{"regarding", event.Regarding, old.Regarding},
		{"related", event.Related, old.Related},
		{"type", event.Type, old.Type},
		{"reason", event.Reason, old.Reason},
		{"action", event.Action, old.Action},
		{"note", event.Note, old.Note},
		{"eventTime", event.EventTime.UnixMicro(), old.EventTime.UnixMicro()},
		{"reportingController", event.ReportingController, old.ReportingController},
		{"reportingInstance", event.ReportingInstance, old.ReportingInstance},
		{"deprecatedSource", event.DeprecatedSource, old.DeprecatedSource},
		{"deprecatedFirstTimestamp", event.DeprecatedFirstTimestamp, old.DeprecatedFirstTimestamp},
		{"deprecatedLastTimestamp", event.DeprecatedLastTimestamp, old.DeprecatedLastTimestamp},
		{"deprecatedCount", event.DeprecatedCount, old.DeprecatedCount},
	} {
		errs = append(errs, apivalidation.ValidateImmutableField(f.now, f.was, field.NewPath(f.name))...)
	}
	return errs
}

func equalSeries(a, b *eventsv1.EventSeries) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Count == b.Count && a.LastObservedTime.Equal(&b.LastObservedTime)
}

// validateEvent returns the errors that creates and updates have in common.
func validateEvent(event *eventsv1.Event) (errs field.ErrorList) {
	errs = append(errs, validateNamespace(event)...)
	for _, msg := range validation.IsDNS1123Subdomain(event.Namespace) {
		errs = append(errs, field.Invalid(field.NewPath("namespace"), event.Namespace, msg))
	}
	if event.EventTime.IsZero() {
		return errs // the server takes it for an Event of a core/v1 recorder
	}

	controller := field.NewPath("reportingController")
	if event.ReportingController == "" {
		errs = append(errs, field.Required(controller, ""))
	}
	for _, msg := range validation.IsQualifiedName(event.ReportingController) {
		errs = append(errs, field.Invalid(controller, event.ReportingController, msg))
	}
	for _, f := range []struct {
		name, value string
		required    bool
		max         int
	}{
		{"reportingInstance", event.ReportingInstance, true, maxInstance},
		{"action", event.Action, true, maxAction},
		{"reason", event.Reason, true, maxReason},
		{"note", event.Note, false, maxNote},
	} {
		switch path := field.NewPath(f.name); {
		case f.required && f.value == "":
			errs = append(errs, field.Required(path, ""))
		case len(f.value) > f.max:
			errs = append(errs, field.Invalid(path, f.value, fmt.Sprintf("must have at most %d bytes, has %d", f.max, len(f.value))))
		}
	}
	return errs
}

// validateNamespace checks that the Event is in the namespace of its object.
func validateNamespace(event *eventsv1.Event) (errs field.ErrorList) {
	path := field.NewPath("regarding", "namespace")
	regarding := event.Regarding.Namespace
	switch {
	case regarding == "" && event.EventTime.IsZero():
		if event.Namespace != metav1.NamespaceNone && event.Namespace != metav1.NamespaceDefault {
			errs = append(errs, field.Invalid(path, regarding, fmt.Sprintf("the Event of a cluster-scoped object must be in %q, is in %q",
				metav1.NamespaceDefault, event.Namespace)))
		}
	case regarding == "":
		if event.Namespace != metav1.NamespaceDefault && event.Namespace != metav1.NamespaceSystem {
			errs = append(errs, field.Invalid(path, regarding, fmt.Sprintf("the Event of a cluster-scoped object must be in %q or %q, is in %q",
				metav1.NamespaceSystem, metav1.NamespaceDefault, event.Namespace)))
		}
	case event.EventTime.IsZero() && regarding != event.Namespace:
		errs = append(errs, field.Invalid(path, regarding, fmt.Sprintf("must be that of the Event, %q", event.Namespace)))
	}
	return errs
}

// validateSeries checks the series, if there is one.
func validateSeries(event *eventsv1.Event) (errs field.ErrorList) {
	if event.Series == nil {
		return nil
	}
	path := field.NewPath("series")
	if n := event.Series.Count; n < 2 {
		errs = append(errs, field.Invalid(path.Child("count"), n, "must be at least 2"))
	}
	if event.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(path.Child("lastObservedTime"), ""))
	}
	return errs
}

// generateName returns the nth name that the server generates.
func generateName(event *eventsv1.Event, n uint64) string {
	return fmt.Sprintf("%s%05x", event.GenerateName, n)
}
