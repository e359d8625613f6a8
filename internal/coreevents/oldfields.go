package coreevents

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToCoreWithOldFields is ToCore for writing: the new fields of an Event decide
// what its old ones say. An Event without eventTime was born old and is as it is.
func ToCoreWithOldFields(event *eventsv1.Event) *corev1.Event {
	core := ToCore(event)
	if core.EventTime.IsZero() {
		return core // it was born old
	}
	core.FirstTimestamp = seconds(core.EventTime)
	core.LastTimestamp, core.Count = core.FirstTimestamp, 1
	if core.Series != nil {
		core.LastTimestamp, core.Count = seconds(core.Series.LastObservedTime), core.Series.Count
	}
	if core.Source.Component == "" {
		core.Source.Component = core.ReportingController
	}
	return core
}

// patchWithOldFields adds to a merge patch the old fields that go with the
// series in it. The first ones are known already, unless the Event was created
// through events.k8s.io, but saying them again costs nothing.
func patchWithOldFields(event *eventsv1.Event, data []byte) ([]byte, error) {
	var patch map[string]json.RawMessage
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("no merge patch: %w", err)
	}
	var series *struct {
		Count            *int32            `json:"count"`
		LastObservedTime *metav1.MicroTime `json:"lastObservedTime"`
	}
	if raw, ok := patch["series"]; ok {
		if err := json.Unmarshal(raw, &series); err != nil {
			return nil, fmt.Errorf("series: %w", err)
		}
	}
	if series == nil {
		return data, nil
	}

	old := make(map[string]any)
	if series.Count != nil {
		old["count"] = *series.Count
	}
	if series.LastObservedTime != nil {
		old["lastTimestamp"] = seconds(*series.LastObservedTime)
	}
	if !event.EventTime.IsZero() {
		old["firstTimestamp"] = seconds(event.EventTime)
	}
	if event.ReportingController != "" {
		old["source"] = corev1.EventSource{Component: event.ReportingController}
	}
	for field, value := range old {
		if _, has := patch[field]; has {
			continue
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		patch[field] = raw
	}
	return json.Marshal(patch)
}

// seconds returns a time as the old fields have it.
func seconds(t metav1.MicroTime) metav1.Time {
	return metav1.NewTime(t.Truncate(time.Second))
}
