package eventstest

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

// Event is one call of Eventf or AnnotatedEventf, as it was made: nothing is
// repaired, cut or put together with other calls.
type Event struct {
	// Regarding is the object that the event is about, without a
	// resourceVersion. It is zero if the object could not be referenced; Problems
	// says why.
	Regarding corev1.ObjectReference
	// Related is the second object, zero if there is none.
	Related corev1.ObjectReference
	// Type, Reason and Action are what the caller passed. A legacy call site has no
	// action; its reason stands in.
	Type, Reason, Action string
	// Note is formatted.
	Note string
	// Annotations are a copy of the caller's, nil if there are none.
	Annotations map[string]string
	// Time is that of the call.
	Time time.Time
	// ReportingController is the name that the recorder has; see Recorder.Named.
	ReportingController string
	// Problems are what is wrong with the event, nil if it is fine.
	Problems []Problem
}

// String returns e in one line, for people.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (%s) %s", orNone(e.Type), orNone(e.Reason), orNone(e.Action), describe(e.Regarding))
	if e.Related != (corev1.ObjectReference{}) {
		fmt.Fprintf(&b, ", related %s", describe(e.Related))
	}
	fmt.Fprintf(&b, ": %q", e.Note)
	if len(e.Annotations) > 0 {
		fmt.Fprintf(&b, " %v", e.Annotations)
	}
	return b.String()
}

// object returns e as the API object that says it, before anything is repaired
// for the API server.
func (e Event) object(instance string) *eventsv1.Event {
	key := series.Key{
		Regarding:           series.ReferenceOf(&e.Regarding),
		Related:             series.ReferenceOf(&e.Related),
		Type:                e.Type,
		Action:              e.Action,
		Reason:              e.Reason,
		ReportingController: e.ReportingController,
		ReportingInstance:   instance,
	}
	event := &eventsv1.Event{
		// The recorder sees to the name; no caller has a say in it.
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.Regarding.Namespace, Name: key.BaseName(), Annotations: e.Annotations},
		EventTime:           metav1.NewMicroTime(e.Time),
		ReportingController: e.ReportingController,
		ReportingInstance:   instance,
		Action:              e.Action,
		Reason:              e.Reason,
		Regarding:           e.Regarding,
		Note:                e.Note,
		Type:                e.Type,
	}
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceSystem
	}
	if !key.Related.IsZero() {
		event.Related = &e.Related
	}
	return event
}

func orNone(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
