package events

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
)

// Stats are the numbers of a [Broadcaster] at one time. They never decrease, except for
// those "at the moment". Every occurrence is on the server, in a tracked series, or
// counted in Dropped.
type Stats struct {
	// Running reports whether events are written at the moment: the broadcaster was started, and has not
	// been shut down.
	Running bool
	// Occurrences is the number of emitted events that [Options].Filter selects, including dropped
	// ones.
	Occurrences uint64
	// Tracked is the number of series at the moment: the sum of the next four.
	Tracked int
	// Singletons is the number of tracked series that have occurred once.
	Singletons int
	// Ongoing is the number of tracked series that are Ongoing.
	Ongoing int
	// Ended is the number of tracked series that are over, and continue if they recur before
	// their Events expire. They are the first to be evicted.
	Ended int
	// Closing is the number of tracked series that were evicted and wait for their last write.
	Closing int
	// Capacity is the limit of Singletons, Ongoing, and Ended together, and of Closing. See
	// [Options].Capacity.
	Capacity int
	// Requests are the requests to the sink by kind, verb, and outcome, in no order. Combinations
	// without a request are missing.
	Requests []RequestStats
	// Dropped is the number of lost occurrences.
	Dropped map[DropReason]uint64
	// Filtered is the number of emitted events that [Options].Filter excludes. They are not
	// lost: nobody wants them.
	Filtered uint64
	// Reasons contains the occurrences and the Ongoing series by controller, type, and
	// reason, in no order: of the first 200 combinations, and of all others together.
	Reasons []ReasonStats
	// ReasonsLimited says that there are others. A controller has some dozens of reasons. If it
	// makes them from names, numbers, or errors, its events do not become series.
	ReasonsLimited bool
	// WatcherDropped is the number of events that watchers in this process did not get
	// because they were too slow.
	WatcherDropped uint64
	// RelatedOmitted is the number of occurrences that were recorded without their
	// related object, because no reference to it could be made.
	RelatedOmitted uint64
	// AnnotationsOmitted is the number of occurrences that were recorded without some
	// of their annotations, because the API server would have rejected them.
	AnnotationsOmitted uint64
	// Adopted is the number of series that continued in an Event that was found by its name:
	// one of an earlier process, or of this one before it evicted the series.
	Adopted uint64
	// Restored is the number of series of earlier processes that were found by a list.
	Restored uint64
	// Waiting is the number of series with something to write at the moment. It is at most the
	// number of tracked series and requests in flight.
	Waiting int
	// LongestWait is for how long the first of these has waited.
	LongestWait time.Duration
	// Namespaces are those in which something waits, because the server fails, denies, slows, or
	// pauses their requests: at most 10, and those first that have waited longest. No other
	// namespace waits for them.
	Namespaces []NamespaceStats
}

// NamespaceStats are the numbers of a namespace in which something waits; see [Stats].Namespaces.
type NamespaceStats struct {
	// Name is the name of the namespace.
	Name string
	// Waiting is the number of series there with something to write.
	Waiting int
	// LongestWait is for how long the first of these has waited.
	LongestWait time.Duration
	// Failures is the number of requests in a row that have failed.
	Failures int
	// Slow is the number of requests in flight that take long.
	Slow int
	// PausedUntil is when the pause that the server wants ends: Retry-After, but at most [Options].EventTTL.
	// It is zero if the server has not said that.
	PausedUntil time.Time
}

// ReasonStats are the numbers of the events with one controller, type, and reason. The
// occurrences and series of combinations without a row count in rows with Controller and Reason
// "other". The sum of all Occurrences is [Stats].Occurrences.
type ReasonStats struct {
	// Controller is the reportingController.
	Controller string
	// Type is "Normal", "Warning", or "other" if it was invalid.
	Type string
	// Reason is the reason.
	Reason string
	// Occurrences is the number of emitted events, including dropped ones.
	Occurrences uint64
	// Ongoing is the number of Ongoing series at the moment.
	Ongoing int
}

// RequestStats are the numbers of the requests with one kind, verb, and outcome.
type RequestStats struct {
	// Kind is what the requests were for: "create", "recreate", "series", "heartbeat", "finish", or
	// "flush" writes a series; "look" reads its Event, and "list" those of earlier processes.
	Kind string
	// Verb is "create", "patch", or "list".
	Verb string
	// Outcome is what became of them: "written", "pushedBack", "troubled", "denied",
	// "gone", "changed", "taken", or "refused".
	Outcome string
	// Count is the number of requests.
	Count uint64
	// Duration is how long they took together.
	Duration time.Duration
	// Buckets contains, for each upper bound, the number of requests that took at most as
	// long. All rows have the same bounds. Requests above the last one are in Count only.
	Buckets map[time.Duration]uint64
}

// counters are the parts of Stats that the tracker does not count. They can be used concurrently.
type counters struct {
	filtered           atomic.Uint64
	relatedOmitted     atomic.Uint64
	annotationsOmitted atomic.Uint64
	restored           atomic.Uint64

	mu       sync.Mutex
	requests map[requestKey]*RequestStats
}

// requestKey is what requests are counted by.
type requestKey struct{ kind, verb, outcome string }

// requested counts a request, and how long it took.
func (c *counters) requested(kind, verb string, outcome schedule.Outcome, took time.Duration) {
	of := requestKey{kind, verb, outcome.String()}
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.requests[of]
	if r == nil {
		r = &RequestStats{Kind: kind, Verb: verb, Outcome: of.outcome, Buckets: make(map[time.Duration]uint64, len(durationBounds))}
		c.requests[of] = r
	}
	r.Count++
	r.Duration += took
	for _, bound := range durationBounds {
		atMost := r.Buckets[bound]
		if took <= bound {
			atMost++
		}
		r.Buckets[bound] = atMost
	}
}

// verbOf returns the verb of the request of a write.
func verbOf(w *tracker.Write) string {
	if w.Creates() {
		return "create"
	}
	return "patch"
}

// Stats returns the current numbers. It is cheap enough to be called every second.
func (b *Broadcaster) Stats() Stats {
	now := b.clock.Now()
	t := b.tracker.Stats(now)
	d := b.dispatcher.Load()
	s := Stats{
		Running:            d != nil && d.ctx.Err() == nil,
		Occurrences:        t.Occurrences,
		Tracked:            t.Singletons + t.Ongoing + t.Ended + t.Closing,
		Singletons:         t.Singletons,
		Ended:              t.Ended,
		Ongoing:            t.Ongoing,
		Closing:            t.Closing,
		Capacity:           t.Capacity,
		Dropped:            make(map[DropReason]uint64, len(t.Dropped)),
		Filtered:           b.counters.filtered.Load(),
		WatcherDropped:     b.watchers.dropped.Load(),
		RelatedOmitted:     b.counters.relatedOmitted.Load(),
		AnnotationsOmitted: b.counters.annotationsOmitted.Load(),
		Adopted:            t.Adopted,
		Restored:           b.counters.restored.Load(),
		Waiting:            t.Waiting,
		LongestWait:        t.LongestWait,
	}
	rows, limited := b.tracker.Tallies()
	s.Reasons, s.ReasonsLimited = make([]ReasonStats, len(rows)), limited
	for i, row := range rows {
		s.Reasons[i] = ReasonStats{row.Controller, row.Type, row.Reason, row.Occurrences, row.Ongoing}
	}
	for _, n := range t.Sick {
		stats := NamespaceStats{Name: n.Name, Waiting: n.Waiting, LongestWait: n.LongestWait, Failures: n.Failures, Slow: n.Slow}
		if n.Pause > 0 {
			stats.PausedUntil = now.Add(n.Pause)
		}
		s.Namespaces = append(s.Namespaces, stats)
	}
	for reason, count := range t.Dropped {
		s.Dropped[DropReason(reason)] = count
	}
	c := &b.counters
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		row := *r
		row.Buckets = maps.Clone(r.Buckets)
		s.Requests = append(s.Requests, row)
	}
	return s
}

// durationBounds are the bounds of rest_client_request_duration_seconds in the
// components of Kubernetes, so that the two metrics can be compared.
var durationBounds = [...]time.Duration{
	5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
}
