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
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/eventseries/eventseries/internal/eventtext"
)

const (
	// AnnotationPrefix begins the annotations and labels of this project. Recorders
	// ignore annotations of their callers that begin with it.
	AnnotationPrefix = "eventseries.dev/"

	// LabelState holds the [State] of a series: Ongoing, Finished, or Unknown. A
	// singleton has none. It is a label because the API server selects by labels. The
	// API had the field `series.state` for it, which events.k8s.io/v1 removed.
	LabelState = AnnotationPrefix + "state"

	// LabelRelatedUID holds the UID of the related object, if it is known and a valid
	// label value. The API server cannot select by the fields of the related object.
	LabelRelatedUID = AnnotationPrefix + "related-uid"

	// AnnotationHeartbeat holds how long after a write of an Ongoing series the next
	// occurrence is written, as [time.ParseDuration] reads it, such as "30m". See
	// [Series.StateAt].
	AnnotationHeartbeat = AnnotationPrefix + "heartbeat"

	// AnnotationWindow holds the quiet window of an Ongoing series: the recorder
	// finishes it when it has been quiet for so long. The value is a duration such as
	// "21m". An Event without the annotation has the window [FinishAfter]. The window
	// follows the loop: it is about twice the longest recent time between two
	// occurrences. See [Series.StateAt].
	AnnotationWindow = AnnotationPrefix + "window"

	// AnnotationEventTime holds the time of the first occurrence if eventTime is empty, as
	// in an Event that was written through core/v1. See [EventTime].
	AnnotationEventTime = AnnotationPrefix + "event-time"

	// AnnotationLastNote holds the note of the latest occurrence, if it differs from
	// `note`, which the API server does not permit to change, or is longer than `note` can be.
	AnnotationLastNote = AnnotationPrefix + "last-note"

	// MaxNoteBytes is the maximum length of `note` in an Event with an eventTime:
	// kube-apiserver's NoteLengthLimit.
	MaxNoteBytes = 1024

	// CombinedPrefix begins the note of a series that combines all events of a tuple
	// whose notes are not distinguished. The legacy recorder uses the same words.
	CombinedPrefix = "(combined from similar events): "

	// DefaultHeartbeat is the heartbeat of an Ongoing series whose Event names none.
	DefaultHeartbeat = 30 * time.Minute

	// FinishAfter is the quiet window of a series whose Event names none: a recorder
	// with default options finishes a fast loop that has been quiet for so long.
	FinishAfter = 6 * time.Minute

	// MaxDuration is the longest heartbeat and the longest window of a series, and limits all
	// durations of a recorder, so that sums do not overflow.
	MaxDuration = 365 * 24 * time.Hour
)

// Series is a series at one time: what an Event says about it. The zero value is a
// series that never occurred.
type Series struct {
	// Key of the series.
	Key Key
	// State of the series, as the Event says it. See [Series.StateAt].
	State State
	// Instance is the reportingInstance of the Event. If empty, that of the key.
	Instance string
	// Namespace and Name are those of the Event.
	Namespace, Name string
	// Version is the resourceVersion of the Event, if it is known. See
	// [Series.Patch].
	Version string
	// Note is the note of the first occurrence. If it is longer than [MaxNoteBytes], the
	// Event contains its beginning, and all of it in [AnnotationLastNote] while it is the latest.
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
	// Heartbeat is how long after a write of an Ongoing series the next occurrence is
	// written. If zero, it is unknown.
	Heartbeat time.Duration
	// Window is for how long an Ongoing series must be quiet before its recorder
	// finishes it. If zero, [FinishAfter].
	Window time.Duration
	// Prompt says that the recorder writes each occurrence within Heartbeat, as the legacy
	// recorder does, so silence says that the series has ended. [FromEvent] does not set it.
	Prompt bool
}

// Event returns the Event to create for s. It has `series` if there was more than
// one occurrence, and then says the state, unless that is Singleton.
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
		Note:                eventtext.Cut(s.Note, MaxNoteBytes),
		Type:                s.Key.Type,
	}
	if !s.Key.Related.IsZero() {
		related := s.Key.Related.ObjectReference()
		event.Related = &related
	}
	if uid := string(s.Key.Related.UID); uid != "" && len(validation.IsValidLabelValue(uid)) == 0 {
		metav1.SetMetaDataLabel(&event.ObjectMeta, LabelRelatedUID, uid)
	}
	last := s.Note
	if event.Series != nil {
		last = cmp.Or(s.LastNote, s.Note)
		if s.State != Singleton {
			metav1.SetMetaDataLabel(&event.ObjectMeta, LabelState, s.State.String())
		}
		if s.Heartbeat > 0 {
			metav1.SetMetaDataAnnotation(&event.ObjectMeta, AnnotationHeartbeat, durationText(s.Heartbeat))
		}
		if s.QuietWindow() != FinishAfter {
			metav1.SetMetaDataAnnotation(&event.ObjectMeta, AnnotationWindow, durationText(s.Window))
		}
	}
	if last != event.Note {
		metav1.SetMetaDataAnnotation(&event.ObjectMeta, AnnotationLastNote, last)
	}
	return event
}

// Patch returns the JSON merge patch (RFC 7386) that updates the Event of s. It
// contains `series` and metadata, because the API server does not permit to change
// anything else. The values are absolute, so it does no harm to apply it twice. If
// Version is set, the server applies the patch to that version of the Event only,
// and returns a conflict for any other.
//
// Patch returns an error if Count is less than 2: kube-apiserver rejects such a
// series (validateV1EventSeries).
func (s *Series) Patch() ([]byte, error) { return s.PatchSince(&Series{}) }

// PatchSince is [Series.Patch] for an Event that is known to have the state, the
// heartbeat, and the window of known: the patch omits those that are the same. A zero
// Window of known is not known; if that of s is zero, too, the patch omits it.
func (s *Series) PatchSince(known *Series) ([]byte, error) {
	if s.Count < 2 {
		return nil, fmt.Errorf("series: no patch for %s/%s: it has occurred %d times, a series needs 2", s.Namespace, s.Name, s.Count)
	}
	var patch struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion,omitempty"`
			Labels          map[string]string `json:"labels,omitempty"`
			Annotations     map[string]any    `json:"annotations,omitempty"` // a string, or nil to remove it
		} `json:"metadata,omitzero"`
		Series *eventsv1.EventSeries `json:"series"`
	}
	patch.Metadata.ResourceVersion = s.Version
	patch.Series = s.eventSeries()
	if s.State != known.State {
		patch.Metadata.Labels = map[string]string{LabelState: s.State.String()}
	}
	annotations := make(map[string]any, len(s.Annotations)+3)
	for k, v := range s.Annotations {
		annotations[k] = v
	}
	if s.Heartbeat > 0 && s.Heartbeat != known.Heartbeat {
		annotations[AnnotationHeartbeat] = durationText(s.Heartbeat)
	}
	switch window := s.QuietWindow(); {
	case s.Window == known.Window, window == known.Window:
	case window == FinishAfter:
		annotations[AnnotationWindow] = nil
	default:
		annotations[AnnotationWindow] = durationText(window)
	}
	switch s.LastNote {
	case "":
	case eventtext.Cut(s.Note, MaxNoteBytes):
		// The notes may have differed for a while: remove the annotation.
		annotations[AnnotationLastNote] = nil
	default:
		annotations[AnnotationLastNote] = s.LastNote
	}
	if len(annotations) > 0 {
		patch.Metadata.Annotations = annotations
	}
	return json.Marshal(patch)
}

// EventTime returns when event occurred first: eventTime, or that in [AnnotationEventTime].
// It is zero if event has neither, like one of the legacy recorder.
func EventTime(event *eventsv1.Event) metav1.MicroTime {
	if event.EventTime.IsZero() {
		if t, err := time.Parse(metav1.RFC3339Micro, event.Annotations[AnnotationEventTime]); err == nil {
			return metav1.NewMicroTime(t.Local())
		}
	}
	return event.EventTime
}

// shortDuration shortens what Duration.String returns: 30m0s to 30m, and 1h0m0s to 1h.
var shortDuration = strings.NewReplacer("h0m0s", "h", "m0s", "m")

func durationText(d time.Duration) string { return shortDuration.Replace(d.String()) }

// parseDuration parses a duration of an annotation. It returns zero if there is none, or
// none that a recorder would write.
func parseDuration(text string) time.Duration {
	if d, err := time.ParseDuration(text); err == nil && d > 0 && d <= MaxDuration {
		return d
	}
	return 0
}

func (s *Series) eventSeries() *eventsv1.EventSeries {
	if s.Count < 2 {
		return nil
	}
	return &eventsv1.EventSeries{Count: s.Count, LastObservedTime: metav1.NewMicroTime(s.Last)}
}

// FromEvent returns the series that an Event describes. Any recorder can have
// written the Event, through either API group. FromEvent returns an error that names the Event and the
// offending value if no series could have that value. The result shares no memory
// with event.
//
// The state is what the Event says; see [Series.StateAt]. An Event with `series` and
// without a state, as client-go writes it, is Unknown. FromEvent ignores other labels,
// and a heartbeat or window that is not a positive duration of at most a year.
func FromEvent(event *eventsv1.Event) (*Series, error) {
	fail := func(format string, args ...any) (*Series, error) {
		return nil, fmt.Errorf("series: event %s/%s: %s", event.Namespace, event.Name, fmt.Sprintf(format, args...))
	}
	first := EventTime(event)
	if first.IsZero() {
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
		First:     first.Time,
		Last:      first.Time,
		Count:     1,
	}
	last := event.Annotations[AnnotationLastNote]
	if len(last) > MaxNoteBytes && eventtext.Cut(last, MaxNoteBytes) == s.Note {
		s.Note = last // of which event.Note is the beginning
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

	said, hasState := event.Labels[LabelState]
	state, ok := ParseState(said)
	switch observed := event.Series; {
	case !ok || hasState && state == Singleton:
		return fail("label %s is %q", LabelState, said)
	case observed == nil && hasState:
		return fail("label %s is %q, but there is no series", LabelState, said)
	case observed == nil:
		return s, nil
	case observed.Count < 2:
		return fail("series.count is %d", observed.Count)
	case observed.LastObservedTime.IsZero():
		return fail("no series.lastObservedTime")
	case observed.LastObservedTime.Time.Before(s.First):
		return fail("series.lastObservedTime %s is before eventTime %s", observed.LastObservedTime, first)
	}
	if !hasState {
		state = Unknown
	}
	s.State, s.Count, s.Last, s.LastNote = state, event.Series.Count, event.Series.LastObservedTime.Time, last
	s.Heartbeat = parseDuration(event.Annotations[AnnotationHeartbeat])
	s.Window = parseDuration(event.Annotations[AnnotationWindow])
	return s, nil
}
