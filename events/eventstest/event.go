package eventstest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

// Event is one call of Eventf or AnnotatedEventf, with the arguments of the caller. It is
// neither repaired nor truncated nor aggregated with other calls.
type Event struct {
	// Regarding refers to the object that the event is about, without a
	// resourceVersion. It is zero if the object is invalid; Problems says why.
	Regarding corev1.ObjectReference
	// Related refers to the second object. It is zero if there is none.
	Related corev1.ObjectReference
	// Type, Reason and Action are the arguments of the caller. A legacy call site has no
	// action, so Action is its reason.
	Type, Reason, Action string
	// Note is the formatted note.
	Note string
	// Annotations is a copy of the caller's annotations, nil if there are none.
	Annotations map[string]string
	// Time is the time of the call.
	Time time.Time
	// ReportingController is the name of the controller; see [Recorder.Named].
	ReportingController string
	// Problems lists what is wrong with the event. It is nil if nothing is.
	Problems []Problem
}

// String returns the event on one line, for people.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (%s) %s", cmp.Or(e.Type, `""`), cmp.Or(e.Reason, `""`), cmp.Or(e.Action, `""`), describe(e.Regarding))
	if e.Related != (corev1.ObjectReference{}) {
		fmt.Fprintf(&b, ", related %s", describe(e.Related))
	}
	fmt.Fprintf(&b, ": %q", e.Note)
	if len(e.Annotations) > 0 {
		fmt.Fprintf(&b, " %v", e.Annotations)
	}
	return b.String()
}

// object returns the event as an API object that was not repaired for the API server.
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
		// The recorder chooses the name, and chooses a valid one.
		ObjectMeta:          metav1.ObjectMeta{Namespace: cmp.Or(e.Regarding.Namespace, metav1.NamespaceSystem), Name: key.Name(0), Annotations: e.Annotations},
		EventTime:           metav1.NewMicroTime(e.Time),
		ReportingController: e.ReportingController,
		ReportingInstance:   instance,
		Action:              e.Action,
		Reason:              e.Reason,
		Regarding:           e.Regarding,
		Note:                e.Note,
		Type:                e.Type,
	}
	if !key.Related.IsZero() {
		event.Related = &e.Related
	}
	return event
}
