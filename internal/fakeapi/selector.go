package fakeapi

import (
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selector returns whether the selectors of opts match an Event. For a field that
// kube-apiserver cannot select by, it returns kube-apiserver's error.
func selector(opts metav1.ListOptions) (func(*eventsv1.Event) bool, error) {
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return nil, err
	}
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return nil, err
	}
	known := selectable(&eventsv1.Event{})
	for _, r := range byField.Requirements() {
		if !known.Has(r.Field) {
			return nil, fmt.Errorf("field label not supported: %s", r.Field)
		}
	}
	return func(event *eventsv1.Event) bool {
		return byField.Matches(selectable(event)) && byLabel.Matches(labels.Set(event.Labels))
	}, nil
}

// selectable returns the fields that lists can select by. They come from
// ToSelectableFields in kube-apiserver's pkg/registry/core/event, with their names in
// events.k8s.io/v1.
func selectable(event *eventsv1.Event) fields.Set {
	return fields.Set{
		"metadata.name":             event.Name,
		"metadata.namespace":        event.Namespace,
		"regarding.apiVersion":      event.Regarding.APIVersion,
		"regarding.kind":            event.Regarding.Kind,
		"regarding.namespace":       event.Regarding.Namespace,
		"regarding.name":            event.Regarding.Name,
		"regarding.uid":             string(event.Regarding.UID),
		"regarding.resourceVersion": event.Regarding.ResourceVersion,
		"regarding.fieldPath":       event.Regarding.FieldPath,
		"reason":                    event.Reason,
		"reportingController":       event.ReportingController,
		"type":                      event.Type,
	}
}
