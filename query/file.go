package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/eventseries/eventseries/internal/apigroup"
)

// ReadEvents reads the Events in a file for [NewFileReader]: JSON or YAML, one object or several, as
// kubectl get events -o json, the API server, and must-gather write them. It converts Events of
// core/v1 to events.k8s.io/v1, and skips other objects.
func ReadEvents(r io.Reader) ([]eventsv1.Event, error) {
	var events []eventsv1.Event
	for decoder := yaml.NewYAMLOrJSONDecoder(r, 4096); ; {
		var document runtime.RawExtension
		if err := decoder.Decode(&document); err != nil {
			if errors.Is(err, io.EOF) {
				return events, nil
			}
			return nil, fmt.Errorf("query: read events: %w", err)
		}
		var err error
		if events, err = appendEvents(events, document.Raw, metav1.TypeMeta{}); err != nil {
			return nil, fmt.Errorf("query: read events: %w", err)
		}
	}
}

// appendEvents appends the Events in an object. The items of some lists have no type; then it is meta.
func appendEvents(events []eventsv1.Event, data []byte, meta metav1.TypeMeta) ([]eventsv1.Event, error) {
	object := struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}{TypeMeta: meta}
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	item := metav1.TypeMeta{APIVersion: object.APIVersion, Kind: "Event"}
	if object.Kind == "List" {
		item = metav1.TypeMeta{}
	}
	for _, data := range object.Items {
		var err error
		if events, err = appendEvents(events, data, item); err != nil {
			return nil, err
		}
	}
	switch group := schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).GroupKind(); group {
	case corev1.SchemeGroupVersion.WithKind("Event").GroupKind():
		var event corev1.Event
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, err
		}
		events = append(events, *apigroup.FromCore(&event))
	case eventKind.GroupKind():
		var event eventsv1.Event
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	return events, nil
}

// NewFileReader returns a Reader of Events in memory, which [ReadEvents] returns. It selects and sorts as
// the API server does, and cannot watch. If an Event occurs several times, its latest version
// counts. Set [Query.At] to the time of the file.
func NewFileReader(events []eventsv1.Event, opts Options) *Reader {
	r := newReader(opts)
	version := func(e *eventsv1.Event) uint64 {
		v, _ := strconv.ParseUint(e.ResourceVersion, 10, 64) // 0 if it is none
		return v
	}
	sameName := func(a, b eventsv1.Event) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	events = slices.SortedStableFunc(slices.Values(events), func(a, b eventsv1.Event) int {
		return cmp.Or(sameName(a, b), cmp.Compare(version(&b), version(&a)))
	})
	events = slices.CompactFunc(events, func(a, b eventsv1.Event) bool { return sameName(a, b) == 0 })
	g := group{resource: eventsv1.Resource("events"), field: eventsField}
	g.list = func(_ context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
		selector, err := fields.ParseSelector(opts.FieldSelector)
		if err != nil {
			return nil, err
		}
		for _, term := range selector.Requirements() {
			if !selectable(&eventsv1.Event{}).Has(term.Field) {
				return nil, apierrors.NewBadRequest("field label not supported: " + term.Field)
			}
		}
		list := &eventsv1.EventList{}
		for i := range events {
			if (namespace == "" || namespace == events[i].Namespace) && (selector.Empty() || selector.Matches(selectable(&events[i]))) {
				list.Items = append(list.Items, events[i])
			}
		}
		return list, nil
	}
	r.groups = [2]group{g, g}
	return r
}

// selectable returns the fields by which an API server selects Events.
func selectable(e *eventsv1.Event) fields.Set {
	return fields.Set{
		"metadata.name": e.Name, "metadata.namespace": e.Namespace, "reason": e.Reason, "type": e.Type,
		"reportingController": e.ReportingController, "source": e.DeprecatedSource.Component,
		"regarding.kind": e.Regarding.Kind, "regarding.namespace": e.Regarding.Namespace, "regarding.name": e.Regarding.Name,
		"regarding.uid": string(e.Regarding.UID), "regarding.apiVersion": e.Regarding.APIVersion,
		"regarding.resourceVersion": e.Regarding.ResourceVersion, "regarding.fieldPath": e.Regarding.FieldPath,
	}
}
