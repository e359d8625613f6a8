package metrics

import (
	"fmt"
	"maps"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/tracker"
)

// family is a metric with all its label values.
type family struct {
	name, help string
	labels     []string
	read       func(*events.Stats, *sender)
}

// families are all that there are.
var families = []family{{
	name: "eventseries_occurrences_total",
	help: "Events that were emitted, those included that were dropped.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.Occurrences)) },
}, {
	name:   "eventseries_occurrences_dropped_total",
	help:   "Events that were emitted and are lost, by the reason.",
	labels: []string{"reason"},
	read:   readDropped,
}, {
	name:   "eventseries_omissions_total",
	help:   "Events that were recorded without their related object or some of their annotations, since these were not valid, by what was left out.",
	labels: []string{"part"},
	read: func(s *events.Stats, to *sender) {
		to.counter(float64(s.RelatedOmitted), "related")
		to.counter(float64(s.AnnotationsOmitted), "annotations")
	},
}, {
	name: "eventseries_watcher_events_dropped_total",
	help: "Events that in-process watchers did not get because they were too slow.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.WatcherDropped)) },
}, {
	name:   "eventseries_series",
	help:   "Series that are tracked, by their state: singleton has occurred once, ongoing goes on, closing has ended and waits for its last write.",
	labels: []string{"state"},
	read: func(s *events.Stats, to *sender) {
		to.gauge(float64(s.Singletons), "singleton")
		to.gauge(float64(s.Ongoing), "ongoing")
		to.gauge(float64(s.Closing), "closing")
	},
}, {
	name: "eventseries_series_capacity",
	help: "Number of singleton and ongoing series that there is room for, and of closing ones.",
	read: func(s *events.Stats, to *sender) { to.gauge(float64(s.Capacity)) },
}, {
	name: "eventseries_series_adopted_total",
	help: "Series that went on in the Event of an earlier process, found by its name.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.Adopted)) },
}, {
	name: "eventseries_series_restored_total",
	help: "Series of earlier processes that were found by listing.",
	read: func(s *events.Stats, to *sender) { to.counter(float64(s.Restored)) },
}, {
	name:   "eventseries_writes_total",
	help:   "Requests to the sink, by what they were for and what became of them.",
	labels: []string{"kind", "outcome"},
	read:   readWrites,
}, {
	name:   "eventseries_request_duration_seconds",
	help:   "How long requests to the sink took, those that failed included, by the verb.",
	labels: []string{"verb"},
	read: func(s *events.Stats, to *sender) {
		for verb, h := range s.Durations {
			to.histogram(h, verb)
		}
	},
}, {
	name: "eventseries_queue_length",
	help: "Writes that could be made now and wait for their turn, the rate limit or the end of a pause.",
	read: func(s *events.Stats, to *sender) { to.gauge(float64(s.Queue)) },
}, {
	name: "eventseries_waiting_series",
	help: "Series that have something to be written, those included that are being written or wait for their next attempt.",
	read: func(s *events.Stats, to *sender) { to.gauge(float64(s.Waiting)) },
}, {
	name: "eventseries_longest_wait_seconds",
	help: "For how long the first of the waiting series has waited.",
	read: func(s *events.Stats, to *sender) { to.gauge(s.LongestWait.Seconds()) },
}, {
	name: "eventseries_paused",
	help: "Whether the server has asked for a pause that is not over.",
	read: func(s *events.Stats, to *sender) {
		paused := 0.0
		if !s.PausedUntil.IsZero() {
			paused = 1
		}
		to.gauge(paused)
	},
}, {
	name: "eventseries_paused_seconds_total",
	help: "How long nothing was written because the server had asked for a pause.",
	read: func(s *events.Stats, to *sender) { to.counter(s.Paused.Seconds()) },
}, {
	name:   "eventseries_distinct_values",
	help:   fmt.Sprintf("Different reasons and actions that Events were created with, up to %d. Both should come from a short list.", events.MaxDistinct),
	labels: []string{"field"},
	read: func(s *events.Stats, to *sender) {
		to.gauge(float64(s.DistinctReasons), "reason")
		to.gauge(float64(s.DistinctActions), "action")
	},
}}

// dropReasons are all that are counted. What has never been counted is shown as 0: an
// increase from nothing is none to Prometheus.
var dropReasons = []events.DropReason{
	events.DropTableFull,
	events.DropDisplaced,
	events.DropClosingFull,
	events.DropInvalidObject,
	events.DropInvalidType,
	events.DropRejected,
	events.DropNamespaceNotFound,
	events.DropNamespaceTerminating,
	events.DropShutdown,
}

func readDropped(s *events.Stats, to *sender) {
	for _, reason := range dropReasons {
		to.counter(float64(s.Dropped[reason]), string(reason))
	}
}

// readWrites shows of each kind those that were written. Of the rest it shows what
// there was: most of what there could be never is.
func readWrites(s *events.Stats, to *sender) {
	all := make(map[events.WriteKey]uint64)
	for kind := range tracker.Kinds {
		if kind != 0 {
			all[events.WriteKey{Kind: kind.String(), Outcome: "written"}] = 0
		}
	}
	all[events.WriteKey{Kind: "list", Outcome: "written"}] = 0
	maps.Copy(all, s.Writes)
	for key, n := range all {
		to.counter(float64(n), key.Kind, key.Outcome)
	}
}
