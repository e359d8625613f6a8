package chaos

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/eventseries/eventseries/series"
)

// subjectReference returns what the events of a key are about.
func subjectReference(namespace string, emitter, key int) *corev1.ObjectReference {
	name := fmt.Sprintf("emitter-%d-key-%d", emitter, key)
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name),
	}
}

// parseSubject is the way back from a name.
func parseSubject(name string) (emitter, key int, ok bool) {
	n, err := fmt.Sscanf(name, "emitter-%d-key-%d", &emitter, &key)
	return emitter, key, err == nil && n == 2 && emitter >= 0 && key >= 0
}

// describe says in a line what an Event tells.
func describe(event *eventsv1.Event) string {
	line := fmt.Sprintf("%s (resourceVersion %s) count %d, first %s", event.Name, event.ResourceVersion, occurrences(event),
		event.EventTime.Format(time.StampMicro))
	if event.Series != nil {
		line += ", last " + event.Series.LastObservedTime.Format(time.StampMicro)
	}
	return line + fmt.Sprintf(", state %q, by %s", event.Annotations[series.AnnotationState], event.ReportingInstance)
}
