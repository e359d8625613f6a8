package apigroup

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/series"
)

// ToCore converts an Event from events.k8s.io/v1 to core/v1. The documentation of
// compat.ToCore lists the fields. ToCore returns nil if event is nil.
func ToCore(event *eventsv1.Event) *corev1.Event {
	if event == nil {
		return nil
	}
	event = event.DeepCopy()
	core := &corev1.Event{
		TypeMeta:            typeMeta(event.TypeMeta, corev1.SchemeGroupVersion),
		ObjectMeta:          event.ObjectMeta,
		InvolvedObject:      event.Regarding,
		Reason:              event.Reason,
		Message:             event.Note,
		Source:              event.DeprecatedSource,
		FirstTimestamp:      event.DeprecatedFirstTimestamp,
		LastTimestamp:       event.DeprecatedLastTimestamp,
		Count:               event.DeprecatedCount,
		Type:                event.Type,
		EventTime:           event.EventTime,
		Action:              event.Action,
		Related:             event.Related,
		ReportingController: event.ReportingController,
		ReportingInstance:   event.ReportingInstance,
	}
	if event.Series != nil {
		core.Series = &corev1.EventSeries{Count: event.Series.Count, LastObservedTime: event.Series.LastObservedTime}
	}
	return core
}

// FromCore converts an Event from core/v1 to events.k8s.io/v1. It reverses [ToCore].
// FromCore returns nil if event is nil.
func FromCore(event *corev1.Event) *eventsv1.Event {
	if event == nil {
		return nil
	}
	event = event.DeepCopy()
	converted := &eventsv1.Event{
		TypeMeta:                 typeMeta(event.TypeMeta, eventsv1.SchemeGroupVersion),
		ObjectMeta:               event.ObjectMeta,
		EventTime:                event.EventTime,
		ReportingController:      event.ReportingController,
		ReportingInstance:        event.ReportingInstance,
		Action:                   event.Action,
		Reason:                   event.Reason,
		Regarding:                event.InvolvedObject,
		Related:                  event.Related,
		Note:                     event.Message,
		Type:                     event.Type,
		DeprecatedSource:         event.Source,
		DeprecatedFirstTimestamp: event.FirstTimestamp,
		DeprecatedLastTimestamp:  event.LastTimestamp,
		DeprecatedCount:          event.Count,
	}
	if event.Series != nil {
		converted.Series = &eventsv1.EventSeries{Count: event.Series.Count, LastObservedTime: event.Series.LastObservedTime}
	}
	return converted
}

// typeMeta returns the type of a converted Event. It remains empty if it is empty, as
// in the responses of typed clients.
func typeMeta(original metav1.TypeMeta, gv schema.GroupVersion) metav1.TypeMeta {
	if original == (metav1.TypeMeta{}) {
		return original
	}
	return metav1.TypeMeta{APIVersion: gv.String(), Kind: "Event"}
}

// ToCoreWithDeprecatedFields converts an Event like [ToCore], and sets firstTimestamp,
// lastTimestamp, count and source from eventTime, series, reportingController and
// reportingInstance. It keeps a component or a host that is already set. The message is the
// latest note of the series.
//
// A legacy Event, which has no eventTime, keeps its deprecated fields.
func ToCoreWithDeprecatedFields(event *eventsv1.Event) *corev1.Event {
	core := ToCore(event)
	if core.EventTime.IsZero() {
		return core
	}
	core.FirstTimestamp = toSeconds(core.EventTime)
	core.LastTimestamp, core.Count = core.FirstTimestamp, 1
	if core.Series != nil {
		core.LastTimestamp, core.Count = toSeconds(core.Series.LastObservedTime), core.Series.Count
	}
	core.Source = sourceOf(event)
	if last, ok := event.Annotations[series.AnnotationLastNote]; ok {
		core.Message = messageOf(event.Note, last)
	}
	return core
}

// messageOf returns the message of an Event in core/v1, which shows the latest note, as
// that of the legacy recorder does. The prefix of a combined series stays: a restarted
// process recognizes the series by it.
func messageOf(note, last string) string {
	if strings.HasPrefix(note, series.CombinedPrefix) && !strings.HasPrefix(last, series.CombinedPrefix) {
		last = eventtext.Cut(series.CombinedPrefix+last, series.MaxNoteBytes)
	}
	return last
}

// sourceOf returns the source of an Event if it has one, and otherwise the one that the
// legacy recorder would write, which uses the component as reportingController and the
// host as reportingInstance. A default instance, "<controller>-<host name>", is no host:
// the legacy caller gave none.
func sourceOf(event *eventsv1.Event) corev1.EventSource {
	source := event.DeprecatedSource
	if source.Component != "" {
		return source
	}
	source.Component = event.ReportingController
	if source.Host != "" {
		return source
	}
	if !strings.HasPrefix(event.ReportingInstance, event.ReportingController+"-") {
		source.Host = event.ReportingInstance
	}
	return source
}

// addCoreFields adds the fields to a merge patch that contains series which only core/v1 can
// change: the deprecated ones, and the message if the patch contains the latest note. It
// includes firstTimestamp, which the server lacks if the Event was created through
// events.k8s.io, and not source: like reportingInstance, that is of the process that
// created the Event.
func addCoreFields(event *eventsv1.Event, data []byte) ([]byte, error) {
	var patch map[string]json.RawMessage
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("parse merge patch: %w", err)
	}
	var observed *struct {
		Count            *int32            `json:"count"`
		LastObservedTime *metav1.MicroTime `json:"lastObservedTime"`
	}
	if raw, ok := patch["series"]; ok {
		if err := json.Unmarshal(raw, &observed); err != nil {
			return nil, fmt.Errorf("parse series: %w", err)
		}
	}
	if observed == nil {
		return data, nil
	}
	var metadata struct {
		Annotations map[string]*string `json:"annotations"`
	}
	if raw, ok := patch["metadata"]; ok {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, fmt.Errorf("parse metadata: %w", err)
		}
	}

	added := make(map[string]any)
	if observed.Count != nil {
		added["count"] = *observed.Count
	}
	if observed.LastObservedTime != nil {
		added["lastTimestamp"] = toSeconds(*observed.LastObservedTime)
	}
	if !event.EventTime.IsZero() {
		added["firstTimestamp"] = toSeconds(event.EventTime)
	}
	if last, ok := metadata.Annotations[series.AnnotationLastNote]; ok && event.Note != "" {
		if last == nil { // the note of the first occurrence is the latest one again
			last = &event.Note
		}
		added["message"] = messageOf(event.Note, *last)
	}
	for field, value := range added {
		if _, ok := patch[field]; ok {
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

// toSeconds truncates a time to the precision of the deprecated fields.
func toSeconds(t metav1.MicroTime) metav1.Time {
	return metav1.NewTime(t.Truncate(time.Second))
}
