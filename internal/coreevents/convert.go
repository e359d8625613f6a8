package coreevents

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ToCore returns an Event of events.k8s.io/v1 as core/v1 shows it. compat.ToCore
// says how.
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

// FromCore returns an Event of core/v1 as events.k8s.io/v1 shows it.
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

// typeMeta returns what an object says of its type in another group.
func typeMeta(was metav1.TypeMeta, gv schema.GroupVersion) metav1.TypeMeta {
	if was == (metav1.TypeMeta{}) {
		return was // as typed clients return it
	}
	return metav1.TypeMeta{APIVersion: gv.String(), Kind: "Event"}
}
