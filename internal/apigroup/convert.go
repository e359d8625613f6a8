package apigroup

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"

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
	core.Message = messageOf(event, event.Annotations[series.AnnotationLastNote])
	return core
}

// toStored converts an Event to what a sink for core/v1 writes: the form of the legacy
// recorder's Events, with the exact first time in an annotation. Most programs take eventTime
// for the time of the latest occurrence.
func toStored(event *eventsv1.Event) *corev1.Event {
	core := ToCoreWithDeprecatedFields(event)
	if core.EventTime.IsZero() {
		return core
	}
	core.Message = storedMessage(event, core.Message)
	if canBeLegacy(event) {
		if event.Note != core.Message && event.Note == eventtext.Cut(core.Message, series.MaxNoteBytes) {
			delete(core.Annotations, series.AnnotationLastNote) // of the same text
		}
		core.EventTime = metav1.MicroTime{}
		metav1.SetMetaDataAnnotation(&core.ObjectMeta, series.AnnotationEventTime, eventTimeText(event))
	}
	return core
}

// fromStored puts eventTime back. It leaves the deprecated fields, and the annotation: a recorder
// recognizes its Events by it.
func fromStored(core *corev1.Event) *eventsv1.Event {
	event := FromCore(core)
	event.EventTime = series.EventTime(event)
	return event
}

// canBeLegacy reports whether the server permits event without eventTime: in the namespace of
// its object, and in default for an object without one.
func canBeLegacy(event *eventsv1.Event) bool {
	return event.Namespace == cmp.Or(event.Regarding.Namespace, metav1.NamespaceDefault)
}

func eventTimeText(event *eventsv1.Event) string {
	return event.EventTime.UTC().Format(metav1.RFC3339Micro)
}

// messageOf returns the message of an Event in core/v1, which shows the latest note, as
// the message of the legacy recorder does. last is the latest note if it is not that of event.
// The prefix of a combined series stays: a restarted process recognizes the series by it.
func messageOf(event *eventsv1.Event, last string) string {
	if strings.HasPrefix(event.Note, series.CombinedPrefix) && last != "" && !strings.HasPrefix(last, series.CombinedPrefix) {
		return series.CombinedPrefix + last
	}
	return cmp.Or(last, event.Note)
}

// storedMessage returns what the server accepts of a message: it limits that of an Event with
// eventTime.
func storedMessage(event *eventsv1.Event, message string) string {
	if canBeLegacy(event) {
		return message
	}
	return eventtext.Cut(message, series.MaxNoteBytes)
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
// change: the deprecated ones, the message if the event or the patch contains the latest note,
// and the form of eventTime. It includes those that are set when the Event is created, because
// that can have been through events.k8s.io, and not source: like reportingInstance, that is of
// the process that created the Event.
func addCoreFields(event *eventsv1.Event, data []byte) ([]byte, error) {
	var patch map[string]any
	var known struct {
		Metadata struct {
			Annotations map[string]*string `json:"annotations"`
		} `json:"metadata"`
		Series *struct {
			Count            *int32            `json:"count"`
			LastObservedTime *metav1.MicroTime `json:"lastObservedTime"`
		} `json:"series"`
	}
	err := json.Unmarshal(data, &patch)
	if err == nil {
		err = json.Unmarshal(data, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("parse merge patch: %w", err)
	}
	if known.Series == nil {
		return data, nil
	}
	added := make(map[string]any)
	if known.Series.Count != nil {
		added["count"] = *known.Series.Count
	}
	if known.Series.LastObservedTime != nil {
		added["lastTimestamp"] = toSeconds(*known.Series.LastObservedTime)
	}
	if !event.EventTime.IsZero() {
		added["firstTimestamp"] = toSeconds(event.EventTime)
	}
	last, ok := event.Annotations[series.AnnotationLastNote]
	if patched, isPatched := known.Metadata.Annotations[series.AnnotationLastNote]; isPatched {
		last, ok = ptr.Deref(patched, ""), true // null: the note of the first occurrence is the latest one again
	}
	if ok && event.Note != "" {
		added["message"] = storedMessage(event, messageOf(event, last))
	}
	if !event.EventTime.IsZero() && canBeLegacy(event) {
		added["eventTime"] = nil
		if err := unstructured.SetNestedField(patch, eventTimeText(event), "metadata", "annotations", series.AnnotationEventTime); err != nil {
			return nil, err
		}
	}
	maps.Copy(added, patch)
	return json.Marshal(added)
}

// toSeconds truncates a time to the precision of the deprecated fields.
func toSeconds(t metav1.MicroTime) metav1.Time {
	return metav1.NewTime(t.Truncate(time.Second))
}
