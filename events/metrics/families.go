package metrics

import (
	"time"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/tracker"
)

// family describes a metric, and reads its values from the statistics.
type family struct {
	name, help string
	labels     []string
	read       func(*events.Stats, *sender)
}

// occurrences are the metrics without [Options].ByReason, and byReason those with it.
var occurrences = []family{{
	name: "eventseries_occurrences_total",
	help: "Emitted events, with dropped and without filtered ones.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.Occurrences)) },
}}

var byReason = []family{{
	name:   "eventseries_occurrences_total",
	help:   "Emitted events, with dropped and without filtered ones, by controller, type and reason.",
	labels: []string{"controller", "type", "reason"},
	read: func(s *events.Stats, to *sender) {
		for _, r := range s.Reasons {
			to.counter(float64(r.Occurrences), r.Controller, r.Type, r.Reason)
		}
	},
}, {
	name:   "eventseries_ongoing_series",
	help:   "Ongoing series, by controller, type and reason.",
	labels: []string{"controller", "type", "reason"},
	read: func(s *events.Stats, to *sender) {
		for _, r := range s.Reasons {
			to.gauge(float64(r.Ongoing), r.Controller, r.Type, r.Reason)
		}
	},
}}

// families are the metrics of every collector.
var families = []family{{
	name:   "eventseries_occurrences_dropped_total",
	help:   "Emitted events that were dropped, by reason.",
	labels: []string{"reason"},
	read:   readDropped,
}, {
	name: "eventseries_occurrences_filtered_total",
	help: "Emitted events that the filter of the broadcaster excludes.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.Filtered)) },
}, {
	name:   "eventseries_omissions_total",
	help:   "Events that were recorded without an invalid part, by that part.",
	labels: []string{"part"},
	read: func(s *events.Stats, to *sender) {
		to.counter(float64(s.RelatedOmitted), "related")
		to.counter(float64(s.AnnotationsOmitted), "annotations")
	},
}, {
	name: "eventseries_watcher_events_dropped_total",
	help: "Events that in-process watchers missed because they were too slow.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.WatcherDropped)) },
}, {
	name:   "eventseries_series",
	help:   "Tracked series, by state: singleton has occurred once, ongoing recurs, ended is over and continues if it recurs, closing waits for its last write before it is forgotten.",
	labels: []string{"state"},
	read: func(s *events.Stats, to *sender) {
		to.gauge(float64(s.Singletons), "singleton")
		to.gauge(float64(s.Ongoing), "ongoing")
		to.gauge(float64(s.Ended), "ended")
		to.gauge(float64(s.Closing), "closing")
	},
}, {
	name: "eventseries_series_capacity",
	help: "Maximum number of singleton, ongoing, and ended series together, and of closing series.",
	read: func(s *events.Stats, to *sender) { to.gauge(float64(s.Capacity)) },
}, {
	name: "eventseries_series_adopted_total",
	help: "Series that continue an Event that was found by its name: of an earlier process, or of this one before an eviction.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.Adopted)) },
}, {
	name: "eventseries_series_restored_total",
	help: "Series of earlier processes that were found by a list.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.Restored)) },
}, {
	name:   "eventseries_writes_total",
	help:   "Requests to the sink, by kind and outcome.",
	labels: []string{"kind", "outcome"},
	read:   readWrites,
}, {
	name:   "eventseries_request_duration_seconds",
	help:   "Duration of requests to the sink, including failed ones, by verb.",
	labels: []string{"verb"},
	read: func(s *events.Stats, to *sender) {
		verbs := make(map[string][]events.RequestStats)
		for _, r := range s.Requests {
			verbs[r.Verb] = append(verbs[r.Verb], r)
		}
		for verb, of := range verbs {
			to.histogram(of, verb)
		}
	},
}, {
	name: "eventseries_running",
	help: "Whether the broadcaster writes events: it was started, and neither its recording was stopped nor has it been shut down.",
	read: func(s *events.Stats, to *sender) { to.flag(s.Running) },
}, {
	name: "eventseries_waiting_series",
	help: "Series with a pending write. Zero if none has waited for a second.",
	read: func(s *events.Stats, to *sender) { to.gauge(ifWaiting(s, float64(s.Waiting))) },
}, {
	name: "eventseries_longest_wait_seconds",
	help: "How long the first of the waiting series has waited. Zero if none has waited for a second.",
	read: func(s *events.Stats, to *sender) { to.gauge(ifWaiting(s, s.LongestWait.Seconds())) },
}, {
	name:   "eventseries_namespace_wait_seconds",
	help:   "How long the first series has waited in a namespace whose requests fail, are denied, slow, or paused. At most 10 namespaces.",
	labels: []string{"event_namespace"},
	read: func(s *events.Stats, to *sender) {
		for _, n := range s.Namespaces {
			to.gauge(n.LongestWait.Seconds(), n.Name)
		}
	},
}, {
	name:   "eventseries_namespace_paused_until_timestamp_seconds",
	help:   "When the server wants the next request of a namespace in which a series waits, because of Retry-After, in Unix time.",
	labels: []string{"event_namespace"},
	read: func(s *events.Stats, to *sender) {
		for _, n := range s.Namespaces {
			if !n.PausedUntil.IsZero() {
				to.gauge(float64(n.PausedUntil.UnixMilli())/1000, n.Name)
			}
		}
	},
}, {
	name: "eventseries_reasons_limited",
	help: "Whether there are too many reasons to count each by itself.",
	read: func(s *events.Stats, to *sender) { to.flag(s.ReasonsLimited) },
}}

// ifWaiting returns value if a series has waited for a second. Otherwise no more is pending than the requests
// that are in flight at any time.
func ifWaiting(s *events.Stats, value float64) float64 {
	if s.LongestWait < time.Second {
		return 0
	}
	return value
}

// readDropped exposes all reasons from the start, with the value 0, because Prometheus does not
// take the appearance of a counter for an increase.
func readDropped(s *events.Stats, to *sender) {
	for _, reason := range tracker.Losses {
		to.counter(float64(s.Dropped[events.DropReason(reason)]), string(reason))
	}
}

// readWrites exposes the outcome "written" of every kind from the start. Other outcomes
// appear when they happen: most combinations never do.
func readWrites(s *events.Stats, to *sender) {
	type write struct{ kind, outcome string }
	all := map[write]uint64{{"list", "written"}: 0}
	for kind := range tracker.Kinds {
		if kind != 0 {
			all[write{kind.String(), "written"}] = 0
		}
	}
	for _, r := range s.Requests {
		all[write{r.Kind, r.Outcome}] += r.Count
	}
	for of, n := range all {
		to.counter(float64(n), of.kind, of.outcome)
	}
}
