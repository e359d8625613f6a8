package query

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

// legacyHeartbeat is how often the legacy recorder updates the Event of an ongoing
// series at least: its spam filter passes one event per object in 5 minutes.
const legacyHeartbeat = 5 * time.Minute

// Recorder says which recorder wrote an Event, as far as the Event tells.
type Recorder string

const (
	// Eventseries is the recorder of this project.
	Eventseries Recorder = "eventseries"
	// ToolsEvents is k8s.io/client-go/tools/events, or another recorder that writes
	// eventTime and says no state.
	ToolsEvents Recorder = "tools/events"
	// ToolsRecord is the legacy recorder k8s.io/client-go/tools/record, or another one
	// that writes count, firstTimestamp, or lastTimestamp.
	ToolsRecord Recorder = "tools/record"
	// Other is a recorder that writes none of these times.
	Other Recorder = "other"
)

// Item is an Event as a series at one time.
type Item struct {
	// Series is the series that the Event describes. Series.State is the state that the
	// Event says or, if it says none, the one that follows from its count. Heartbeat and
	// Window are those of the recorder. For a legacy Event, the key has the deprecated source
	// as reporting controller and reporting instance, and the window is an estimate.
	series.Series
	// State is the state at At.
	State series.State
	// Event is the Event as read, without managed fields unless
	// [Options.ManagedFields] is set. An Event that was read through core/v1 is
	// converted to events.k8s.io/v1.
	Event *eventsv1.Event
	// At is the time to which State refers.
	At time.Time
	// Stated is the state that the Event says, or Singleton if it says none.
	Stated series.State
	// Recorder is the kind of recorder that wrote the Event.
	Recorder Recorder
	// NextWrite is when the recorder of an ongoing or stale series should update its
	// Event next: the time of the next heartbeat. It is zero for other series, and for the
	// legacy recorder, which has no heartbeats.
	NextWrite time.Time
	// StaleAt is when an ongoing series becomes Unknown or Quiet unless its recorder
	// updates the Event before. If it is before At, the series is stale since then. It is
	// zero for series that are neither ongoing nor stale.
	StaleAt time.Time
	// Followed is when another event of the controller about the object began after the latest
	// occurrence, for a series that would be Ongoing. It says that the loop is over, or that the
	// controller does something else, so the series is Unknown. It is zero if there is none, if
	// the Event says a state, or if [FromEvent] returned the item: see [Settle].
	Followed time.Time
	// Contended is the time of the latest other event about the object that the legacy recorder
	// can have written instead of this one, for a series that would be Quiet. It is zero if
	// there is none, or if [FromEvent] returned the item: see [Settle].
	Contended time.Time
	// Problem says what is malformed in the Event; nil if nothing is. The other fields
	// are then as close as possible to what the recorder meant.
	Problem error

	written time.Time // when tools/events wrote the count; zero if the managed fields do not tell
	encoded []byte    // Event, if it has been encoded
}

// FromEvent returns an Event of any recorder as a series, with its state at a given
// time. The table in the package documentation says how. It never fails: see
// [Item.Problem]. The result keeps event.
func FromEvent(event *eventsv1.Event, at time.Time) *Item {
	return newItem(event, at, writtenAt(event))
}

// newItem is [FromEvent] with the managed fields apart.
func newItem(event *eventsv1.Event, at, written time.Time) *Item {
	n := normalize(event)
	s, err := series.FromEvent(&n.event)
	if err != nil { // normalize leaves nothing to reject
		s = &series.Series{Namespace: event.Namespace, Name: event.Name, Version: event.ResourceVersion, Note: event.Note}
		n.problem("%v", err)
	}
	s.First, s.Last, s.Count = n.first, n.last, n.count
	item := &Item{Series: *s, Event: event, At: at, Stated: n.stated, written: written}
	if item.ahead() {
		n.problem("the last time %s is in the future", n.last.UTC().Format(time.RFC3339Nano))
	}
	if len(n.problems) > 0 {
		item.Problem = fmt.Errorf("query: event %s/%s: %s", event.Namespace, event.Name, strings.Join(n.problems, "; "))
	}
	item.Recorder = recorderOf(event, &s.Key)

	said := n.stated
	if said == series.Singleton && n.count > 1 {
		said = series.Ongoing
	}
	item.setState(said, n.heartbeat)
	if item.Recorder == ToolsEvents && item.unconfirmed() && written.Sub(item.Last) >= series.FinishAfter && !written.After(at) {
		item.State, item.NextWrite = series.Quiet, time.Time{} // it was the last write of tools/events to the series
	}
	return item
}

// writtenAt returns when the recorder wrote the count, as far as the managed fields tell.
func writtenAt(event *eventsv1.Event) (at time.Time) {
	for _, m := range event.ManagedFields {
		if m.Time != nil && m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.Raw, []byte(`"f:series"`)) && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}

// normalized is an Event of any recorder in the form that [series.FromEvent] reads.
type normalized struct {
	event       eventsv1.Event // shares memory with the original
	first, last time.Time      // first is zero only if the Event has no time at all
	count       int32
	stated      series.State  // Singleton if the Event says none
	heartbeat   time.Duration // if the Event does not say it
	problems    []string
}

func (n *normalized) problem(format string, args ...any) {
	n.problems = append(n.problems, fmt.Sprintf(format, args...))
}

// normalize takes count and times of an Event from where its recorder writes them.
func normalize(event *eventsv1.Event) *normalized {
	n := &normalized{event: *event, count: 1, heartbeat: series.DefaultHeartbeat}
	eventTime, legacyFirst, legacyLast := n.known(series.EventTime(event).Time), n.known(event.DeprecatedFirstTimestamp.Time), n.known(event.DeprecatedLastTimestamp.Time)
	n.first = firstSet(eventTime, legacyFirst, legacyLast)
	switch {
	case event.Series != nil:
		n.count, n.last = event.Series.Count, n.known(event.Series.LastObservedTime.Time)
		if n.last.IsZero() {
			n.problem("no series.lastObservedTime")
			n.last = legacyLast
		}
		if n.count < 2 {
			n.problem("series.count is %d", n.count)
		}
	case event.DeprecatedCount != 0:
		n.count, n.last, n.heartbeat = event.DeprecatedCount, legacyLast, legacyHeartbeat
		if n.count < 1 {
			n.problem("count is %d", n.count)
		}
		if n.count > 1 && n.last.IsZero() {
			n.problem("no lastTimestamp")
		}
	default:
		n.last = legacyLast
	}
	n.count = max(n.count, 1)
	n.first = firstSet(n.first, n.last, event.CreationTimestamp.Time)
	if n.count == 1 {
		n.last = firstSet(n.last, n.first)
	}
	switch early := n.first.Sub(n.last); {
	case early <= 0 || n.last.IsZero():
	case early < time.Second:
		n.last = n.first // lastTimestamp has no fractions of a second
	default:
		n.problem("the last time %s is before the first, %s", n.last.UTC().Format(time.RFC3339Nano), n.first.UTC().Format(time.RFC3339Nano))
		n.first, n.last = n.last, n.first
	}

	said, isSaid := event.Labels[series.LabelState]
	state, ok := series.ParseState(said)
	switch {
	case isSaid && (!ok || state == series.Singleton):
		n.problem("label %s is %q", series.LabelState, said)
	case isSaid && n.count < 2:
		n.problem("label %s is %q, but there is no series", series.LabelState, said)
		n.stated = state
	default:
		n.stated = state
	}

	// series.FromEvent reads these fields. The caller replaces what it makes of them.
	n.event.Labels = nil
	n.event.EventTime = metav1.NewMicroTime(firstSet(n.first, time.Unix(0, 0)))
	n.event.Series = nil
	if n.count > 1 {
		n.event.Series = &eventsv1.EventSeries{Count: n.count, LastObservedTime: metav1.NewMicroTime(firstSet(n.last, n.first, time.Unix(0, 0)))}
	}
	if event.ReportingController == "" {
		n.event.ReportingController = event.DeprecatedSource.Component
	}
	if event.ReportingInstance == "" {
		n.event.ReportingInstance = event.DeprecatedSource.Host
	}
	return n
}

// known returns a time of the Event, or zero if no clock can have shown it.
func (n *normalized) known(t time.Time) time.Time {
	if !t.IsZero() && t.Before(time.Unix(0, 0)) {
		n.problem("the time %s is before 1970", t.UTC().Format(time.RFC3339Nano))
		return time.Time{}
	}
	return t
}

func firstSet(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func recorderOf(event *eventsv1.Event, key *series.Key) Recorder {
	if event.Annotations[series.AnnotationEventTime] != "" {
		return Eventseries
	}
	for k := range event.Labels {
		if strings.HasPrefix(k, series.AnnotationPrefix) {
			return Eventseries
		}
	}
	switch {
	case !event.EventTime.IsZero():
		if _, ours := ownKey(event.Name, event.Note, event.EventTime.Time, *key); ours {
			return Eventseries
		}
		return ToolsEvents
	case event.DeprecatedCount != 0 || !event.DeprecatedFirstTimestamp.IsZero() || !event.DeprecatedLastTimestamp.IsZero():
		return ToolsRecord
	default:
		return Other
	}
}

// Rate returns the occurrences per second: (Count−1) / (Last−First). It is 0 if that
// is not defined, as for a singleton.
func (i *Item) Rate() float64 { return rate(int64(i.Count), i.First, i.Last) }

func rate(count int64, first, last time.Time) float64 {
	if d := last.Sub(first); count > 1 && d > 0 {
		return float64(count-1) / d.Seconds()
	}
	return 0
}

// Stale reports whether the series is Unknown because its recorder did not update the Event in
// time, so nobody knows whether it still goes on. It is stale since [Item.StaleAt].
func (i *Item) Stale() bool {
	return i.State == series.Unknown && !i.StaleAt.IsZero() && i.At.After(i.StaleAt)
}

// Node returns the name of the Node that the Event comes from or is about, as far as it
// tells: the regarding Node, the host of a legacy source, the instance of a kubelet or a
// kube-proxy, or the related Node. Otherwise, it is empty.
func (i *Item) Node() string {
	switch controller := i.Controller(); {
	case i.Key.Regarding.Kind == "Node":
		return i.Key.Regarding.Name
	case i.Event.DeprecatedSource.Host != "":
		return i.Event.DeprecatedSource.Host
	case controller == "kubelet" || controller == "kube-proxy":
		return i.host()
	case i.Key.Related.Kind == "Node":
		return i.Key.Related.Name
	default:
		return ""
	}
}

// host returns the part of the reporting instance after the name of the controller: recorders
// put the host name there, which is that of the Node or of the Pod.
func (i *Item) host() string {
	return strings.TrimPrefix(i.Key.ReportingInstance, i.Controller()+"-")
}

// ReportedBy reports whether an instance of a controller reported the Event. It is the reporting
// instance, such as "kubelet-worker-3", or the host in it, such as "worker-3". For a legacy Event, it is
// the host of the deprecated source, too.
func (i *Item) ReportedBy(instance string) bool {
	return instance != "" && (instance == i.Key.ReportingInstance || instance == i.host() || instance == i.Event.DeprecatedSource.Host)
}

// Controller returns the controller that reported the Event: reportingController, or
// the component of the deprecated source if that is empty.
func (i *Item) Controller() string { return i.Key.ReportingController }

// LowerBound reports whether the event can have occurred more often than Count until Last, or
// later than Last: the spam filter of the legacy recorder drops occurrences.
func (i *Item) LowerBound() bool { return i.Recorder == ToolsRecord && i.Count > 1 }
