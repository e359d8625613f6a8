package series

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// AnnotationPrefix begins the annotations of this project. Recorders ignore
	// annotations of their callers that begin with it.
	AnnotationPrefix = "eventseries.dev/"

	// AnnotationState holds the [State] of a series: Ongoing, Finished, or Unknown. A
	// singleton has none. The API had the field `series.state` for it, which
	// events.k8s.io/v1 removed.
	AnnotationState = AnnotationPrefix + "state"

	// AnnotationLastNote holds the note of the latest occurrence, if it differs from
	// `note`, which the API server lets nobody change.
	AnnotationLastNote = AnnotationPrefix + "last-note"

	// AnnotationSuccessor is on the Event with the base name of a key if a later
	// series of that key is Ongoing under a unique name. Its value is the name of that
	// Event, a space, and the time at which the annotation was renewed (RFC 3339). A
	// restarted process finds that Event by it.
	AnnotationSuccessor = AnnotationPrefix + "successor"

	// MaxNoteBytes is the maximum length of a note: kube-apiserver's NoteLengthLimit.
	MaxNoteBytes = 1024

	// CombinedPrefix begins the note of a series that combines all events of a tuple
	// whose notes are not distinguished. The legacy recorder uses the same words.
	CombinedPrefix = "(combined from similar events): "
)

// Series is a series at one time: what an Event says about it. The zero value is a
// series that never occurred.
type Series struct {
	// Key of the series.
	Key Key
	// State of the series.
	State State
	// Instance is the reportingInstance of the Event. If empty, that of the key.
	Instance string
	// Namespace and Name are those of the Event.
	Namespace, Name string
	// Version is the resourceVersion of the Event, if it is known. See
	// [Series.Patch].
	Version string
	// Note is the note of the first occurrence.
	Note string
	// LastNote is the latest note that was formatted. If empty, none was since the
	// first.
	LastNote string
	// Annotations are those of the caller. The map can be shared and must not be
	// changed.
	Annotations map[string]string
	// First and Last are the times of the first and the latest occurrence.
	First, Last time.Time
	// Count is the number of occurrences, limited to MaxInt32 as in the API.
	Count int32
}

// Event returns the Event to create for s. It has `series` if there was more than
// one occurrence.
func (s *Series) Event() *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   s.Namespace,
			Name:        s.Name,
			Annotations: maps.Clone(s.Annotations),
		},
		EventTime:           metav1.NewMicroTime(s.First),
		Series:              s.eventSeries(),
		ReportingController: s.Key.ReportingController,
		ReportingInstance:   cmp.Or(s.Instance, s.Key.ReportingInstance),
		Action:              s.Key.Action,
		Reason:              s.Key.Reason,
		Regarding:           s.Key.Regarding.ObjectReference(),
		Note:                s.Note,
		Type:                s.Key.Type,
	}
	if !s.Key.Related.IsZero() {
		related := s.Key.Related.ObjectReference()
		event.Related = &related
	}
	if event.Series != nil {
		metav1.SetMetaDataAnnotation(&event.ObjectMeta, AnnotationState, s.State.String())
		if s.LastNote != "" && s.LastNote != s.Note {
			metav1.SetMetaDataAnnotation(&event.ObjectMeta, AnnotationLastNote, s.LastNote)
		}
	}
	return event
}

// Patch returns the JSON merge patch (RFC 7386) that updates the Event of s. It
// contains `series` and metadata, because the API server lets nobody change
// anything else. The values are absolute, so it does no harm to apply it twice. If
// Version is set, the server applies the patch to that version of the Event only,
// and returns a conflict for any other.
//
// Patch returns an error if Count is less than 2: kube-apiserver rejects such a
// series (validateV1EventSeries).
func (s *Series) Patch() ([]byte, error) {
	if s.Count < 2 {
		return nil, fmt.Errorf("series: no patch for %s/%s: it has occurred %d times, a series needs 2", s.Namespace, s.Name, s.Count)
	}
	annotations := make(map[string]*string, len(s.Annotations)+2)
	for k, v := range s.Annotations {
		annotations[k] = &v
	}
	state := s.State.String()
	annotations[AnnotationState] = &state
	switch s.LastNote {
	case "":
	case s.Note:
		// The notes differed for a while: remove the annotation.
		annotations[AnnotationLastNote] = nil
	default:
		annotations[AnnotationLastNote] = &s.LastNote
	}

	var patch struct {
		Metadata struct {
			ResourceVersion string             `json:"resourceVersion,omitempty"`
			Annotations     map[string]*string `json:"annotations"`
		} `json:"metadata"`
		Series *eventsv1.EventSeries `json:"series"`
	}
	patch.Metadata.ResourceVersion = s.Version
	patch.Metadata.Annotations = annotations
	patch.Series = s.eventSeries()
	return json.Marshal(patch)
}

func (s *Series) eventSeries() *eventsv1.EventSeries {
	if s.Count < 2 {
		return nil
	}
	return &eventsv1.EventSeries{Count: s.Count, LastObservedTime: metav1.NewMicroTime(s.Last)}
}

// FromEvent returns the series that an Event describes. Any recorder can have
// written the Event. FromEvent returns an error that names the Event and the
// offending value if no series could have that value. The result shares no memory
// with event.
//
// An Event with `series` and without a state, as client-go writes it, is Unknown.
func FromEvent(event *eventsv1.Event) (*Series, error) {
	fail := func(format string, args ...any) (*Series, error) {
		return nil, fmt.Errorf("series: event %s/%s: %s", event.Namespace, event.Name, fmt.Sprintf(format, args...))
	}
	if event.EventTime.IsZero() {
		return fail("no eventTime")
	}
	s := &Series{
		Key: Key{
			Regarding:           ReferenceOf(&event.Regarding),
			Related:             ReferenceOf(event.Related),
			Type:                event.Type,
			Action:              event.Action,
			Reason:              event.Reason,
			ReportingController: event.ReportingController,
			ReportingInstance:   event.ReportingInstance,
		},
		Instance:  event.ReportingInstance,
		Namespace: event.Namespace,
		Name:      event.Name,
		Version:   event.ResourceVersion,
		Note:      event.Note,
		First:     event.EventTime.Time,
		Last:      event.EventTime.Time,
		Count:     1,
	}
	for k, v := range event.Annotations {
		if strings.HasPrefix(k, AnnotationPrefix) {
			continue
		}
		if s.Annotations == nil {
			s.Annotations = make(map[string]string, len(event.Annotations))
		}
		s.Annotations[k] = v
	}

	said, hasState := event.Annotations[AnnotationState]
	state, ok := ParseState(said)
	if !ok || hasState && state == Singleton {
		return fail("annotation %s is %q", AnnotationState, said)
	}
	if event.Series == nil {
		if state != Singleton {
			return fail("annotation %s is %q, but there is no series", AnnotationState, said)
		}
		return s, nil
	}

	if event.Series.Count < 2 {
		return fail("series.count is %d", event.Series.Count)
	}
	if event.Series.LastObservedTime.IsZero() {
		return fail("no series.lastObservedTime")
	}
	if event.Series.LastObservedTime.Time.Before(s.First) {
		return fail("series.lastObservedTime %s is before eventTime %s", event.Series.LastObservedTime, event.EventTime)
	}
	s.Count = event.Series.Count
	s.Last = event.Series.LastObservedTime.Time
	s.LastNote = event.Annotations[AnnotationLastNote]
	s.State = state
	if !hasState {
		s.State = Unknown
	}
	return s, nil
}
