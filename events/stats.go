package events

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
)

// Stats are the counters of a Broadcaster at one time. They only ever grow, but
// for those that say how much there is at the moment. Every occurrence is on the
// server, or on its way there in a tracked series, or counted in Dropped.
type Stats struct {
	// Occurrences is the number of calls that emitted an event, those included
	// that were dropped.
	Occurrences uint64
	// Tracked is the number of series in the table at the moment: the sum of the
	// next three.
	Tracked int
	// Singletons is how many of those have occurred once.
	Singletons int
	// Ongoing is how many of those go on.
	Ongoing int
	// Closing is how many of those have ended and wait for their last write.
	Closing int
	// Capacity is how many series there can be that have not ended, and how many
	// that have: see Options.Capacity.
	Capacity int
	// Writes is the number of requests to the sink, those included that look for
	// the Events of earlier processes.
	Writes map[WriteKey]uint64
	// Durations says how long requests took, by the verb: "create", "patch" or
	// "list". Those that failed are included. A verb without a request is not there.
	Durations map[string]Histogram
	// Dropped is the number of occurrences lost.
	Dropped map[DropReason]uint64
	// WatcherDropped is the number of events that in-process watchers did not
	// get because they were too slow.
	WatcherDropped uint64
	// RelatedOmitted is the number of occurrences whose related object could not
	// be referenced. They were recorded without it.
	RelatedOmitted uint64
	// AnnotationsOmitted is the number of occurrences some of whose annotations
	// the API server would not have taken. They were recorded without them.
	AnnotationsOmitted uint64
	// Adopted is the number of series that went on in the Event of an earlier
	// process, found by its name.
	Adopted uint64
	// Restored is the number of series of earlier processes that were found by
	// listing.
	Restored uint64
	// Queue is the number of writes that wait at the moment, without those that
	// have failed and wait for their next attempt.
	Queue int
	// Waiting is the number of series that have something to be written at the
	// moment: that wait in the queue or for their next attempt, or are being written.
	// It is zero as long as the broadcaster has not been started.
	Waiting int
	// LongestWait is for how long the first of those has waited.
	LongestWait time.Duration
	// PausedUntil is when the next request may be made after the server has
	// asked for a pause. It is zero if there is no pause. One that is past means
	// that the server is being tried.
	PausedUntil time.Time
	// Paused is how long the server has had the broadcaster pause in all.
	Paused time.Duration
	// DistinctReasons is how many different reasons the Events had that were to be
	// created, up to MaxDistinct. A controller has some dozens. One that makes its
	// reasons of names, numbers or errors has ever more of them, and its events do
	// not become series.
	DistinctReasons int
	// DistinctActions is the same of the actions.
	DistinctActions int
}

// WriteKey says which requests Stats.Writes counts.
type WriteKey struct {
	// Kind is what the request was for: "create", "recreate", "series",
	// "heartbeat", "finish" or "flush" write a series; "look", "close" and
	// "successor" see to the Events of earlier series; "list" finds them.
	Kind string
	// Outcome is what became of it: "written", "pushedBack", "troubled",
	// "denied", "gone", "changed", "taken" or "refused".
	Outcome string
}

// Requests returns the number of all requests to the sink.
func (s Stats) Requests() uint64 {
	var n uint64
	for _, count := range s.Writes {
		n += count
	}
	return n
}

// counters are what Stats is made of. They may be used concurrently.
type counters struct {
	refused            atomic.Uint64 // occurrences that did not get as far as the table
	relatedOmitted     atomic.Uint64
	annotationsOmitted atomic.Uint64
	restored           atomic.Uint64
	writes             [tracker.WriteKinds][outcomes]atomic.Uint64
	lists              [outcomes]atomic.Uint64
	durations          [len(verbNames)]durations
	reasons, actions   distinct

	mu    sync.Mutex
	drops map[DropReason]uint64
}

// verb is what is asked of a sink.
type verb uint8

const (
	verbCreate verb = iota
	verbPatch
	verbList
)

var verbNames = [...]string{"create", "patch", "list"}

// wrote counts a request that took so long.
func (c *counters) wrote(w *tracker.Write, o outcome, took time.Duration) {
	c.writes[w.Kind][o].Add(1)
	verb := verbPatch
	if w.Creates() {
		verb = verbCreate
	}
	c.durations[verb].observe(took)
	if w.Kind == tracker.WriteCreate {
		// Here and not where events are emitted: a hot loop never gets here.
		c.reasons.add(w.Series.Key.Reason)
		c.actions.add(w.Series.Key.Action)
	}
}

// listed counts a request that lists.
func (c *counters) listed(o outcome, took time.Duration) {
	c.lists[o].Add(1)
	c.durations[verbList].observe(took)
}

func (c *counters) dropped(drop Drop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.drops == nil {
		c.drops = make(map[DropReason]uint64)
	}
	c.drops[drop.Reason] += uint64(drop.Count)
}

// Stats returns the counters. It is cheap enough to be called every second.
func (b *Broadcaster) Stats() Stats {
	s := Stats{
		Occurrences:        b.table.Occurrences() + b.counters.refused.Load(),
		Capacity:           b.table.Capacity(),
		Writes:             make(map[WriteKey]uint64),
		Durations:          make(map[string]Histogram),
		Dropped:            make(map[DropReason]uint64),
		WatcherDropped:     b.watchers.dropped.Load(),
		RelatedOmitted:     b.counters.relatedOmitted.Load(),
		AnnotationsOmitted: b.counters.annotationsOmitted.Load(),
		Adopted:            b.table.Adopted(),
		Restored:           b.counters.restored.Load(),
		DistinctReasons:    b.counters.reasons.count(),
		DistinctActions:    b.counters.actions.count(),
	}
	s.Singletons, s.Ongoing, s.Closing = b.table.ByState()
	s.Tracked = s.Singletons + s.Ongoing + s.Closing
	s.PausedUntil, s.Paused = b.gate.state()
	s.Queue, s.Waiting, s.LongestWait = b.waiting()
	for v, name := range verbNames {
		if h := b.counters.durations[v].histogram(); h.Count > 0 {
			s.Durations[name] = h
		}
	}
	for kind := range b.counters.writes {
		for o := range b.counters.writes[kind] {
			if n := b.counters.writes[kind][o].Load(); n > 0 {
				s.Writes[WriteKey{tracker.WriteKind(kind).String(), outcome(o).String()}] = n
			}
		}
	}
	for o := range b.counters.lists {
		if n := b.counters.lists[o].Load(); n > 0 {
			s.Writes[WriteKey{"list", outcome(o).String()}] = n
		}
	}
	b.counters.mu.Lock()
	defer b.counters.mu.Unlock()
	for reason, n := range b.counters.drops {
		s.Dropped[reason] = n
	}
	return s
}

// waiting returns the number of writes in the queue, and of series that wait for
// one, and for how long the first of these has done so.
func (b *Broadcaster) waiting() (queue, series int, longest time.Duration) {
	w := b.writer.Load()
	if w == nil {
		return 0, 0, 0
	}
	select {
	case <-b.shutDown:
		return 0, 0, 0 // what was left has been dropped
	default:
	}
	series, since := w.backlog.state()
	if series > 0 {
		longest = b.clock.Since(since)
	}
	return w.queue.Len(), series, longest
}

// waitingSeries returns Stats.Waiting.
func (b *Broadcaster) waitingSeries() int {
	_, series, _ := b.waiting()
	return series
}
