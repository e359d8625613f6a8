package tracker

import (
	"strconv"
	"time"

	"github.com/eventseries/eventseries/series"
)

// Kind says what a write is for.
type Kind uint8

const (
	none       Kind = iota
	Create          // creates the Event
	Recreate        // creates the Event again because it expired or was deleted
	MakeSeries      // makes the Event Ongoing
	Heartbeat       // updates the count of an ongoing series
	Finish          // writes the count of a series that is Finished or Unknown
	FlushCount      // updates the count because someone waits for that
	Look            // changes nothing; the response is the Event that has the name
	Kinds           // the number of kinds
)

var kindNames = [Kinds]string{"none", "create", "recreate", "series", "heartbeat", "finish", "flush", "look"}

// String returns the name of the kind in lower case.
func (k Kind) String() string { return kindNames[k] }

// Write is one request to be made, which the caller passes to [Tracker.Apply] with the result.
type Write struct {
	// Kind says what the write is for.
	Kind Kind
	// Series is the series at the time of Next. Its namespace and name are those of the Event that
	// the request is for, and its Version is the resourceVersion that this must have, if any.
	Series series.Series
	// Retries reports whether the latest request for the series has failed.
	Retries bool
	// Waited is for how long there was something to write when Next returned the write.
	Waited time.Duration

	entry  *Entry
	at     time.Duration // when Next returned it
	before stored        // what the Event with Version of Series contains
}

// Creates reports whether the request creates Series.Event. Otherwise it applies [Write.Patch].
func (w *Write) Creates() bool { return w.Kind == Create || w.Kind == Recreate }

// Patch returns the JSON merge patch. It omits what the Event contains, except for an unusual window.
func (w *Write) Patch() ([]byte, error) {
	if w.Kind == Look {
		return []byte("{}"), nil
	}
	s, known := w.Series, series.Series{}
	if s.Version == "" { // a late patch may have changed the Event
		return s.Patch()
	}
	known.State = w.before.state
	if w.before.stale&partHeartbeat == 0 {
		known.Heartbeat = s.Heartbeat
	}
	if w.before.stale&partWindow == 0 {
		known.Window = series.FinishAfter
	}
	if w.before.stale&partNote == 0 {
		s.LastNote = ""
	}
	if w.before.stale&partAnnotations == 0 {
		s.Annotations = nil
	}
	return s.PatchSince(&known)
}

// stored is what the server is known to store of a series.
type stored struct {
	version uint64        // resourceVersion of the Event; zero if unknown
	at      time.Duration // of the write that is stored; not later than that
	last    int64         // the time of the latest occurrence; zero if there has been no Event
	count   int32         // zero if there is no Event
	state   series.State
	stale   parts // of the Event that may differ from the spec
}

// parts are parts of an Event, as bits. A patch contains those that are stale.
type parts uint8

const (
	partHeartbeat   parts = 1 << iota // the annotation of the heartbeat
	partWindow                        // the annotation of the window
	partNote                          // the last note
	partAnnotations                   // annotations of the caller
)

// with returns p with or without part.
func (p parts) with(part parts, is bool) parts {
	if is {
		return p | part
	}
	return p &^ part
}

// compare returns the parts that an Event which contains found does not have as e has them.
func (e *Entry) compare(r *rules, found *series.Series) parts {
	isStale, lastNote := false, ""
	if found.Count > 1 { // no other Event has the annotation
		lastNote = differing(found.Note, found.LastNote)
	}
	for k, v := range e.annotations {
		stored, ok := found.Annotations[k]
		isStale = isStale || !ok || stored != v
	}
	return parts(0).
		with(partAnnotations, isStale).
		with(partNote, e.differingNote() != lastNote).
		with(partHeartbeat, found.Heartbeat != r.opts.HeartbeatInterval).
		with(partWindow, found.QuietWindow() != series.FinishAfter)
}

// write returns the write of the given kind. k is the key.
func (e *Entry) write(s *step, kind Kind, k *series.Key) *Write {
	w := &Write{Kind: kind, entry: e, at: s.at, before: e.stored, Series: series.Series{
		Key:         *k,
		State:       e.state,
		Instance:    e.key.shared.reporter,
		Namespace:   s.namespace(k),
		Name:        e.name(k),
		Note:        e.note,
		LastNote:    e.lastNote,
		Annotations: e.annotations,
		First:       time.UnixMicro(e.first),
		Last:        time.UnixMicro(e.lastWall(s)),
		Count:       e.count,
	}}
	if e.state != series.Singleton {
		w.Series.Window = s.window.Of(e.rhythm, e.last)
	}
	switch {
	case e.state != series.Ongoing:
	case s.table.hurried && s.at >= e.leftAt():
		// No other heartbeat comes, neither from this process nor from another one.
		w.Series.Heartbeat, w.before.stale = time.Second, w.before.stale|partHeartbeat
	default:
		w.Series.Heartbeat = s.opts.HeartbeatInterval
	}
	if version := e.stored.version; version != 0 && !w.Creates() && kind != Look {
		w.Series.Version = strconv.FormatUint(version, 10)
	}
	return w
}

// lastWall returns the wall time of the latest occurrence. A time that the server may have is not
// taken back. An occurrence at this very moment may be in the time and not in the count; then it is in
// the count of the next write.
func (e *Entry) lastWall(s *step) int64 {
	least := max(e.first, e.stored.last)
	if e.attempts != nil {
		least = max(least, e.attempts.latest.last)
	}
	switch {
	case e.silent:
		return least
	case e.state == series.Singleton:
		return e.first // its Event has no other time, whatever the wall clock says now
	case e.isShared(s.rules):
		return s.marked(max(s.wall(e.last), least), least)
	default:
		return max(s.wall(e.last), least)
	}
}

// isShared reports whether other processes write to the Event of e, or have begun it.
func (e *Entry) isShared(r *rules) bool {
	return r.opts.Shared || e.first < r.epoch.UnixMicro()
}

// markRange is the number of microseconds that can name a process.
const markRange = int64(time.Millisecond / time.Microsecond)

// marked returns a time within a millisecond of last, and not before atLeast: whole milliseconds after
// the epoch, and as many microseconds as the mark says. If a response is lost, and another process
// has counted the same until the same time, its write would otherwise look like one of this process.
func (r *rules) marked(last, atLeast int64) int64 {
	last -= r.distance(last)
	if last < atLeast {
		last += markRange
	}
	return last
}

// distance returns how many microseconds a time is after one that is marked.
func (r *rules) distance(last int64) int64 {
	since := last - r.epoch.UnixMicro() - r.mark
	return (since%markRange + markRange) % markRange // since can be negative
}
