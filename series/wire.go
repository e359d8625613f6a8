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
	// AnnotationPrefix begins the annotations that belong to this project. What
	// a caller gives under it is not taken.
	AnnotationPrefix = "eventseries.dev/"

	// AnnotationState holds the State of a series: Ongoing, Finished or Unknown.
	// A singleton has none. The API had a field for it, `series.state`, which is
	// gone since events.k8s.io/v1.
	AnnotationState = AnnotationPrefix + "state"

	// AnnotationSuccessor stands on the Event that has the base name of a key, when
	// a later series of that key is Ongoing under a unique name: the name of that
	// Event, a space, and the time of its first occurrence (RFC 3339). A process that
	// is started again finds it there.
	AnnotationSuccessor = AnnotationPrefix + "successor"

	// MaxNoteBytes is how long a note may be: kube-apiserver's NoteLengthLimit.
	MaxNoteBytes = 1024

	// MaxAnnotationBytes is how many bytes a series takes of its callers'
	// annotations. The API server allows 256 KiB for all annotations of an object
	// (TotalAnnotationSizeLimitB).
	MaxAnnotationBytes = 64 << 10

	// CombinedPrefix begins the note of the series that takes what is not told apart
	// by its note any more. The words are those of the legacy recorder, which people
	// and programs know.
	CombinedPrefix = "(combined from similar events): "

	// AnnotationLastNote holds the note of the latest occurrence, where it
	// differs from `note`, which the API server does not let anybody change.
	AnnotationLastNote = AnnotationPrefix + "last-note"
)

// Series is what is known about one series at one time, and what of it stands,
// or is to stand, on the server. The zero value is a series that never occurred.
type Series struct {
	// Key of the series.
	Key Key
	// State of the series.
	State State
	// Instance is the reportingInstance of the Event. If empty, it is that of the
	// key. Where instances share their series, keys have none.
	Instance string
	// Namespace and Name are those of the Event.
	Namespace, Name string
	// Version is the resourceVersion of the Event, as far as it is known. No Event
	// and no patch is made of it.
	Version string
	// Note is the note of the first occurrence.
	Note string
	// LastNote is the latest note that was looked at, empty if that was never
	// done. See Options.NoteInterval.
	LastNote string
	// Annotations are the caller's. The map is shared and not to be changed.
	Annotations map[string]string
	// First and Last are the times of the first and the latest occurrence.
	First, Last time.Time
	// Count is the number of occurrences. It stays at MaxInt32 once it is there,
	// as the API has no room for more.
	Count int32
}

// Event returns the Event to create for s: without `series` if there was one
// occurrence, and with it if there were more.
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

// Patch returns the JSON merge patch (RFC 7386) that brings the Event of s up to
// date. It has `series` and annotations and nothing else: the API server lets
// nothing else be changed. The values are absolute, so a patch that is sent
// twice does no harm.
//
// There must have been two occurrences: kube-apiserver refuses a series with a
// count below 2 (validateV1EventSeries).
func (s *Series) Patch() ([]byte, error) { return s.PatchOf("") }

// PatchOf is Patch for the given resourceVersion of the Event alone, if there is
// one: the API server answers with a conflict where it has another.
func (s *Series) PatchOf(version string) ([]byte, error) {
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
		// The notes differed for a while: take away what was said then.
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
	patch.Metadata.ResourceVersion = version
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

// FromEvent reads an Event back into the series that it tells of. It is meant
// for Events of any origin: what no series could have written is an error, which
// names the Event and the offending value. The result shares no memory with
// event.
//
// An Event with `series` that does not say its state, as client-go writes them,
// is Unknown.
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
