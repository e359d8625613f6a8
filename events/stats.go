package events

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// Stats are the numbers of a [Broadcaster] at one time. They never decrease, except for
// those "at the moment". Every occurrence is on the server, in a tracked series, or
// counted in Dropped or Filtered.
type Stats struct {
	// Occurrences is the number of emitted events, including dropped ones.
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
	// Closing is the number of tracked series that were evicted and wait for their last
	// write.
	Closing int
	// Capacity is the limit of Singletons, Ongoing, and Ended together, and of Closing. See
	// [Options].Capacity.
	Capacity int
	// Writes is the number of requests to the sink, including those that look for
	// Events of earlier processes.
	Writes map[WriteKey]uint64
	// Durations says how long requests took, by verb: "create", "patch", or "list".
	// Failed requests are included. A verb without a request is missing.
	Durations map[string]Histogram
	// Dropped is the number of lost occurrences.
	Dropped map[DropReason]uint64
	// Filtered is the number of occurrences that [Options].Filter excludes. They are not
	// lost: nobody wants them.
	Filtered uint64
	// Reasons contains the occurrences and the Ongoing series by controller, type, and
	// reason, in no order. It is nil unless [Options].Reasons is set. A combination that is
	// in it once stays, so in a process there are at most three more than that.
	Reasons []ReasonStats
	// ReasonsLimited says that there are more combinations than [Options].Reasons, so that
	// some count as "other".
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
	// Adopted is the number of series that continued in the Event of an earlier
	// process, found by its name.
	Adopted uint64
	// Restored is the number of series of earlier processes that were found by a
	// list.
	Restored uint64
	// Queue is the number of series whose write can be sent at the moment.
	Queue int
	// Waiting is the number of series with something to write at the moment: in the
	// queue, in flight, or waiting to be retried. It is at most the number of tracked
	// series and requests in flight.
	Waiting int
	// LongestWait is for how long the first of these has waited.
	LongestWait time.Duration
	// PausedUntil is when the next request can be made after the server pushed back.
	// It is zero without a pause. If it is in the past, one request probes the server.
	PausedUntil time.Time
	// Paused is the total time of all pauses.
	Paused time.Duration
	// DistinctReasons is the number of different reasons of created Events, up to
	// [MaxDistinct]. A controller has some dozens. If it makes reasons from names,
	// numbers, or errors, the number grows, and its events do not become series.
	DistinctReasons int
	// DistinctActions is the same for actions.
	DistinctActions int
}

// ReasonStats are the numbers of the events with one controller, type, and reason. The first
// [Options].Reasons combinations have rows. The occurrences and series of all others count in
// rows with Controller and Reason "other". The sum of all Occurrences is
// [Stats].Occurrences.
type ReasonStats struct {
	// Controller is the reportingController.
	Controller string
	// Type is "Normal", "Warning", or "other" if it was invalid.
	Type string
	// Reason is the reason.
	Reason string
	// Occurrences is the number of emitted events, including dropped and filtered ones.
	Occurrences uint64
	// Ongoing is the number of Ongoing series at the moment.
	Ongoing int
}

// WriteKey identifies a number of [Stats].Writes.
type WriteKey struct {
	// Kind is what the request was for: "create", "recreate", "series", "heartbeat",
	// "finish", or "flush" writes a series; "look" reads its Event, and "list" those of
	// earlier processes.
	Kind string
	// Outcome is what became of it: "written", "pushedBack", "troubled", "denied",
	// "gone", "changed", "taken", or "refused".
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

// counters are the parts of Stats that the tracker does not count. They can be used
// concurrently.
type counters struct {
	refused            atomic.Uint64 // occurrences that did not reach the tracker
	filtered           atomic.Uint64
	relatedOmitted     atomic.Uint64
	annotationsOmitted atomic.Uint64
	restored           atomic.Uint64
	writes             [tracker.Kinds][tracker.Outcomes]atomic.Uint64
	lists              [tracker.Outcomes]atomic.Uint64
	reasons, actions   distinct
	onMany             func(field, value string, key *series.Key) // see manyDistinct

	mu        sync.Mutex
	drops     map[DropReason]uint64
	durations map[string]*durations // by verb
}

func (c *counters) wrote(w *tracker.Write, outcome tracker.Outcome, took time.Duration) {
	c.writes[w.Kind][outcome].Add(1)
	verb := "patch"
	if w.Creates() {
		verb = "create"
	}
	c.took(verb, took)
	if w.Kind == tracker.Create {
		// Here and not where events are emitted, to keep it out of the hot path.
		if key := &w.Series.Key; c.reasons.add(key.Reason) {
			c.onMany("reason", key.Reason, key)
		}
		if key := &w.Series.Key; c.actions.add(key.Action) {
			c.onMany("action", key.Action, key)
		}
	}
}

// took records the duration of a request.
func (c *counters) took(verb string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.durations[verb]
	if d == nil {
		d = &durations{}
		c.durations[verb] = d
	}
	d.observe(took)
}

func (c *counters) dropped(reason DropReason, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops[reason] += uint64(count)
}

// Stats returns the current numbers. It is cheap enough to be called every second.
func (b *Broadcaster) Stats() Stats {
	t := b.tracker.Stats(b.clock.Now())
	s := Stats{
		Occurrences:        t.Occurrences + b.counters.refused.Load(),
		Tracked:            t.Singletons + t.Ongoing + t.Ended + t.Closing,
		Singletons:         t.Singletons,
		Ended:              t.Ended,
		Ongoing:            t.Ongoing,
		Closing:            t.Closing,
		Capacity:           t.Capacity,
		Writes:             make(map[WriteKey]uint64),
		Durations:          make(map[string]Histogram),
		Dropped:            make(map[DropReason]uint64),
		Filtered:           b.counters.filtered.Load(),
		WatcherDropped:     b.watchers.dropped.Load(),
		RelatedOmitted:     b.counters.relatedOmitted.Load(),
		AnnotationsOmitted: b.counters.annotationsOmitted.Load(),
		Adopted:            t.Adopted,
		Restored:           b.counters.restored.Load(),
		Queue:              t.Ready,
		Waiting:            t.Waiting,
		LongestWait:        t.LongestWait,
		PausedUntil:        t.PausedUntil,
		Paused:             t.PausedTotal,
		DistinctReasons:    b.counters.reasons.count(),
		DistinctActions:    b.counters.actions.count(),
	}
	if b.opts.Reasons > 0 {
		var rows []tracker.Tally
		rows, s.ReasonsLimited = b.tracker.Tallies()
		s.Reasons = make([]ReasonStats, len(rows))
		for i, row := range rows {
			s.Reasons[i] = ReasonStats{row.Controller, row.Type, row.Reason, row.Occurrences, row.Ongoing}
		}
	}
	for kind := range b.counters.writes {
		for o := range b.counters.writes[kind] {
			if n := b.counters.writes[kind][o].Load(); n > 0 {
				s.Writes[WriteKey{tracker.Kind(kind).String(), tracker.Outcome(o).String()}] = n
			}
		}
	}
	for o := range b.counters.lists {
		if n := b.counters.lists[o].Load(); n > 0 {
			s.Writes[WriteKey{"list", tracker.Outcome(o).String()}] = n
		}
	}
	b.counters.mu.Lock()
	defer b.counters.mu.Unlock()
	maps.Copy(s.Dropped, b.counters.drops)
	for verb, d := range b.counters.durations {
		s.Durations[verb] = d.histogram()
	}
	return s
}

func (b *Broadcaster) waitingSeries() int { return b.tracker.Stats(b.clock.Now()).Waiting }

// Histogram is the distribution of request durations.
type Histogram struct {
	// Count is the number of requests.
	Count uint64
	// Sum is the total duration of all requests.
	Sum time.Duration
	// Buckets have ascending bounds, which are the same in all histograms. Requests
	// above the last bound are in Count only.
	Buckets []Bucket
}

// Bucket is one bucket of a [Histogram].
type Bucket struct {
	// Bound is the upper bound of the bucket, inclusive.
	Bound time.Duration
	// Count is the cumulative number of requests: those with a duration of at most
	// Bound.
	Count uint64
}

// durationBounds are the bounds of rest_client_request_duration_seconds in the
// components of Kubernetes, so that the two metrics can be compared.
var durationBounds = [...]time.Duration{
	5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
}

// durations collects the data of a Histogram.
type durations struct {
	counts [len(durationBounds)]uint64 // not cumulative
	count  uint64
	sum    time.Duration
}

func (d *durations) observe(took time.Duration) {
	d.count++
	d.sum += took
	for i, bound := range durationBounds {
		if took <= bound {
			d.counts[i]++
			return
		}
	}
}

func (d *durations) histogram() Histogram {
	h := Histogram{Count: d.count, Sum: d.sum, Buckets: make([]Bucket, len(durationBounds))}
	var n uint64
	for i, bound := range durationBounds {
		n += d.counts[i]
		h.Buckets[i] = Bucket{Bound: bound, Count: n}
	}
	return h
}

// MaxDistinct is the limit of [Stats].DistinctReasons and [Stats].DistinctActions.
const MaxDistinct = 1000

// distinct counts different strings, up to MaxDistinct. It can be used concurrently.
type distinct struct {
	mu   sync.Mutex
	seen sets.Set[string]
}

// manyDistinct is how many different reasons or actions of a process are too many to come
// from a list in its code. The alert EventSeriesHighCardinality has the same limit.
const manyDistinct = 200

// add reports whether s makes them more than manyDistinct.
func (d *distinct) add(s string) (many bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seen = sets.New[string]()
	}
	before := d.seen.Len()
	if before < MaxDistinct {
		d.seen.Insert(s)
	}
	return before == manyDistinct && d.seen.Len() > before
}

// logMany logs once for a field that the events of this process have too many values in it.
func (b *Broadcaster) logMany(field, value string, key *series.Key) {
	b.logger().Info("Events have too many different values in a field, and do not become series", "field", field, "limit", manyDistinct,
		"example", value, "reportingController", key.ReportingController, "regarding", klog.KRef(key.Regarding.Namespace, key.Regarding.Name))
}

func (d *distinct) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen)
}
