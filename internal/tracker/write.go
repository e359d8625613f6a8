package tracker

import (
	"encoding/json"
	"time"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// Kind says what a write is for.
type Kind uint8

const (
	none       Kind = iota
	Create          // creates the Event
	Recreate        // creates the Event again because it expired or was deleted
	MakeSeries      // turns a singleton into a series
	Heartbeat       // updates the count of an ongoing series
	Finish          // writes the last count of a series that is Finished or Unknown
	FlushCount      // updates the count because someone waits for that
	Look            // changes nothing; the response is the Event that has a name
	Close           // closes the Event of an earlier process as Finished
	Signpost        // makes the Event under the base name lead to the Ongoing one
	List            // lists Events of earlier processes, or asks whether it may; see Page
	Kinds           // the number of kinds
)

var kindNames = [Kinds]string{"none", "create", "recreate", "series", "heartbeat", "finish", "flush", "look", "close", "successor", "list"}

// String returns the name of the kind in lower case.
func (k Kind) String() string { return kindNames[k] }

// Verb returns the verb of the request: create, patch, or list.
func (k Kind) Verb() string {
	switch k {
	case Create, Recreate:
		return "create"
	case List:
		return "list"
	default:
		return "patch"
	}
}

// Write is one request to be made: what [Tracker.Next] wants the server to know.
// The caller passes it to [Tracker.Apply] with the result.
type Write struct {
	// Kind says what the write is for.
	Kind Kind
	// Series is the series at the time of Next. Its namespace and name are those of
	// the Event that the request is for, and its Version is the resourceVersion that
	// this Event must have, if any.
	Series series.Series

	// Page is what to list or to ask, if Kind is List.
	Page *Page

	entry    *Entry
	pass     heartbeat.Pass
	done     bool          // Apply has been called; guarded by Tracker.mu
	patch    []byte        // if it is not that of Series
	progress progress      // of the spec
	at       time.Duration // when Next returned it
	unsaid   parts         // of the Event with Version of Series
	state    series.State  // that this Event says
	said     time.Duration // the window that this Event says; zero if that is not known
}

// Creates reports whether the request creates Series.Event. Otherwise it applies
// [Write.Patch].
func (w *Write) Creates() bool { return w.Kind == Create || w.Kind == Recreate }

// WritesSeries reports whether the request creates or updates the Event of the
// series, and not only prepares that or points to it.
func (w *Write) WritesSeries() bool { return w.Kind < Look }

// Patch returns the JSON merge patch to send.
func (w *Write) Patch() ([]byte, error) {
	if w.patch != nil {
		return w.patch, nil
	}
	s := w.Series
	known := series.Series{Window: w.said}
	if s.Version == "" { // it is not known what else the Event says
		return s.PatchSince(&known)
	}
	known.State, known.Managed = w.state, w.unsaid.has(partManaged)
	if !w.unsaid.has(partHeartbeat) {
		known.Heartbeat = s.Heartbeat
	}
	if !w.unsaid.has(partNote) {
		s.LastNote = ""
	}
	if !w.unsaid.has(partAnnotations) {
		s.Annotations = nil
	}
	return s.PatchSince(&known)
}

// write returns the write of the given kind. The entry has a name.
func (e *Entry) write(s *step, kind Kind) *Write {
	// The latest occurrence is computed back from now, so a wall clock that was set
	// right since is believed; but a time that the server knows, or may know, is not
	// taken back. An occurrence at this very moment may be in the time and not in
	// the count; then it is in the count of the next write.
	last := s.now.Add(e.last() - s.at).UnixMicro()
	if e.silent {
		last = e.status.last
	}
	last = max(last, e.status.last, e.spec.first)
	if s.opts.Scope == SameController && e.spec.state != series.Singleton && !e.silent {
		last = s.marked(last, max(e.status.last, e.spec.first))
	}
	w := &Write{Kind: kind, entry: e, at: s.at, progress: e.spec.progress}
	w.Series = series.Series{
		Key:         e.Key(),
		State:       e.spec.state,
		Instance:    e.instance(),
		Name:        e.name(),
		Note:        e.spec.note,
		LastNote:    e.spec.latestOrZero().note,
		Annotations: e.spec.latestOrZero().annotations,
		First:       time.UnixMicro(e.spec.first),
		Last:        time.UnixMicro(last),
		Count:       e.spec.count,
	}
	w.Series.Namespace = s.namespace(&w.Series.Key)
	if e.spec.state != series.Singleton {
		w.Series.Window = e.promise(s.rules, s.at)
	}
	if e.spec.state == series.Ongoing && e.life == accepting {
		w.Series.Heartbeat = s.opts.HeartbeatInterval
	}
	switch kind {
	case Look:
		w.patch = []byte("{}")
		if e.phase == live {
			w.Series.Name = e.baseName()
		} else {
			w.Series.Name = e.rare.claim.name
		}
	case Close:
		w.Series.Name, w.Series.Version = e.rare.claim.name, versionText(e.status.version)
		w.patch = metadataPatch(w.Series.Version, "labels", series.LabelState, series.Finished.String())
	case Signpost:
		// The time makes each renewal a change. The server neither writes nor renews
		// the TTL for a patch that changes nothing.
		lead := e.name() + " " + s.now.UTC().Format(time.RFC3339Nano)
		w.Series.Name, w.Series.Version = e.baseName(), versionText(s.base.version)
		w.patch = metadataPatch(w.Series.Version, "annotations", series.AnnotationSuccessor, lead)
	default:
		e.status.last = last
		if !w.Creates() {
			w.Series.Version, w.state = versionText(e.status.version), e.status.state
			if w.Series.Version != "" { // otherwise a late patch may have changed it
				w.said = e.said()
			}
		}
		w.unsaid = e.status.unsaid
		e.status.unsaid = 0 // unless the write fails
	}
	return w
}

// markRange is the number of microseconds that can name a process.
const markRange = 1000

// marked returns a time within a millisecond of last, and not before atLeast: whole
// milliseconds after the epoch, and as many microseconds as the mark says. If a response
// is lost, and another process has counted the same until the same time, the write of
// that process would otherwise look like one of this process. All times are in
// microseconds.
func (r *rules) marked(last, atLeast int64) int64 {
	since := last - r.epoch.UnixMicro() - r.mark
	last -= (since%markRange + markRange) % markRange // since can be negative
	if last < atLeast {
		last += markRange
	}
	return last
}

// metadataPatch returns the JSON merge patch that sets one label or annotation of an
// Event, which must have the given version unless that is empty.
func metadataPatch(version, field, key, value string) []byte {
	metadata := map[string]any{field: map[string]string{key: value}}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic(err) // strings can always be marshaled
	}
	return patch
}
