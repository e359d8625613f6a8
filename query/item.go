package query

import (
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/eventseries/eventseries/series"
)

// Recorder says which recorder wrote an Event, as far as its fields tell.
type Recorder string

const (
	// Eventseries is the recorder of this project.
	Eventseries Recorder = "eventseries"
	// ToolsEvents is k8s.io/client-go/tools/events, or another recorder that writes
	// eventTime and says no state.
	ToolsEvents Recorder = "tools/events"
	// ToolsRecord is the legacy recorder k8s.io/client-go/tools/record, or another one
	// that writes count, firstTimestamp, and lastTimestamp.
	ToolsRecord Recorder = "tools/record"
	// Other is a recorder that writes none of these times.
	Other Recorder = "other"
)

// Item is an Event as a series at one time. Its memory is its own.
type Item struct {
	// Series is the series that the Event describes. Series.State is the state at At:
	// a stale series is [series.Unknown].
	series.Series
	// Event is the Event as read, without managed fields unless
	// [Options.ManagedFields] is set. An Event that was read through core/v1 is
	// converted to events.k8s.io/v1.
	Event *eventsv1.Event
	// At is the time to which Series.State refers.
	At time.Time
	// Stated is the state that the Event says. It differs from Series.State if the
	// series is stale, or if its recorder says no state (Singleton).
	Stated series.State
	// Recorder is the kind of recorder that wrote the Event.
	Recorder Recorder
	// NextWrite is when the recorder of an ongoing or stale series should update its
	// Event next: the time of the next heartbeat. It is zero for other series.
	NextWrite time.Time
	// StaleAt is when an ongoing series becomes Unknown unless its recorder updates
	// the Event before. If it is not after At, the series is stale since then. It is
	// zero for series that are neither ongoing nor stale.
	StaleAt time.Time
	// Problem says what is malformed in the Event; nil if nothing is. The other fields
	// are then as close as possible to what the recorder meant.
	Problem error
}

// FromEvent returns an Event of any recorder as a series, with its state at a given
// time. It never fails: see [Item.Problem]. The result refers to event.
func FromEvent(event *eventsv1.Event, at time.Time) *Item {
	return &Item{Event: event, At: at}
}

// Rate returns the occurrences per second: (Count−1) / (Last−First). It is 0 if that
// is not defined, as for a singleton.
func (i *Item) Rate() float64 { return 0 }

// Stale reports whether the series is Unknown because its recorder missed the time of
// a heartbeat, so nobody knows whether it still goes on. It is stale since
// [Item.StaleAt].
func (i *Item) Stale() bool { return false }

// Controller returns the controller that reported the Event: reportingController, or
// the component of the deprecated source if that is empty.
func (i *Item) Controller() string { return "" }

// Successor returns the name of the Event that continues the key of this Event, as the
// annotation [series.AnnotationSuccessor] says, and the time at which the recorder
// renewed that annotation. name is empty if there is none.
func (i *Item) Successor() (name string, renewed time.Time) { return "", time.Time{} }
