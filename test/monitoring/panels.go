package monitoring

// panel is one of the dashboard.
type panel struct {
	title string
	// description is what Grafana shows beside the title.
	description string
	unit        string // of Grafana
	// stat is for a panel that shows the latest value alone.
	stat    bool
	queries []query
	// quiet says that all values are 0 in a healthy process, and in the recording.
	quiet bool
}

// query is one of a panel.
type query struct {
	expression string
	legend     string // with {{label}}
}

// rows are the panels, as they are beside and below each other. $S stands for the
// selection of the variables of the dashboard.
var rows = [][]panel{{{
	title: "Occurrences", unit: "ops", stat: true,
	description: "Events that controllers emit, in a second.",
	queries:     []query{{`sum(rate(eventseries_occurrences_total{$S}[$__rate_interval]))`, ""}},
}, {
	title: "Requests", unit: "reqps", stat: true,
	description: "Requests by which they are written, in a second.",
	queries:     []query{{`sum(rate(eventseries_writes_total{$S}[$__rate_interval]))`, ""}},
}, {
	title: "Dropped", unit: "short", stat: true, quiet: true,
	description: "Events that were lost in the range of time that is shown. Should be 0.",
	queries:     []query{{`sum(increase(eventseries_occurrences_dropped_total{$S}[$__range]))`, ""}},
}, {
	title: "Paused", unit: "short", stat: true,
	description: "Processes that the API server has asked to pause.",
	queries:     []query{{`sum(eventseries_paused{$S})`, ""}},
}, {
	title: "Longest wait", unit: "s", stat: true,
	description: "For how long the first of the series that wait has waited to be written.",
	queries:     []query{{`max(eventseries_longest_wait_seconds{$S})`, ""}},
}, {
	title: "Fullest table", unit: "percentunit", stat: true,
	description: "How much of its room the process with the fullest table uses.",
	queries: []query{{
		`max(sum without (state) (eventseries_series{state=~"singleton|ongoing",$S}) / eventseries_series_capacity{$S})`, "",
	}},
}}, {{
	title: "Occurrences and requests", unit: "ops",
	description: "What is emitted, and what it costs. The more loops there are, the farther the lines are apart.",
	queries: []query{
		{`sum(rate(eventseries_occurrences_total{$S}[$__rate_interval]))`, "occurrences"},
		{`sum(rate(eventseries_writes_total{$S}[$__rate_interval]))`, "requests"},
	},
}, {
	title: "Requests by outcome", unit: "reqps",
	description: "written is good; taken, gone and changed belong to the life of an Event; pushedBack, troubled and denied are made again; refused is lost.",
	queries:     []query{{`sum by (outcome) (rate(eventseries_writes_total{$S}[$__rate_interval]))`, "{{outcome}}"}},
}}, {{
	title: "Paused", unit: "percentunit",
	description: "The part of the time in which nothing was written because the API server had asked for a pause, in the process that was paused longest.",
	queries:     []query{{`max(rate(eventseries_paused_seconds_total{$S}[$__rate_interval]))`, "paused"}},
}, {
	title: "Waiting", unit: "short",
	description: "Series that have something to be written, and how many of them could be written now.",
	queries: []query{
		{`sum(eventseries_waiting_series{$S})`, "waiting"},
		{`sum(eventseries_queue_length{$S})`, "in the queue"},
	},
}}, {{
	title: "Longest wait", unit: "s",
	description: "For how long the first of the series that wait has waited to be written, in the process that is most behind.",
	queries:     []query{{`max(eventseries_longest_wait_seconds{$S})`, "longest wait"}},
}, {
	title: "Duration of requests", unit: "s",
	description: "How long requests take, those that fail included.",
	queries: []query{
		{`histogram_quantile(0.5, sum by (le) (rate(eventseries_request_duration_seconds_bucket{$S}[$__rate_interval])))`, "median"},
		{`histogram_quantile(0.99, sum by (le) (rate(eventseries_request_duration_seconds_bucket{$S}[$__rate_interval])))`, "99 %"},
	},
}}, {{
	title: "Series", unit: "short",
	description: "Series that are tracked: that have occurred once, go on, or have ended and wait for their last write.",
	queries:     []query{{`sum by (state) (eventseries_series{$S})`, "{{state}}"}},
}, {
	title: "Series of earlier processes", unit: "ops",
	description: "Series that went on in the Event of an earlier process: adopted by its name, or restored by listing.",
	queries: []query{
		{`sum(rate(eventseries_series_adopted_total{$S}[$__rate_interval]))`, "adopted"},
		{`sum(rate(eventseries_series_restored_total{$S}[$__rate_interval]))`, "restored"},
	},
}}, {{
	title: "Requests by kind", unit: "reqps",
	description: "What requests are for. A running series costs a heartbeat in 30 minutes.",
	queries:     []query{{`sum by (kind) (rate(eventseries_writes_total{$S}[$__rate_interval]))`, "{{kind}}"}},
}, {
	title: "Reasons and actions", unit: "short",
	description: "Different reasons and actions that Events were created with, in the process that has most. Should be some dozens, and not grow.",
	queries:     []query{{`max by (field) (eventseries_distinct_values{$S})`, "{{field}}"}},
}}, {{
	title: "Dropped", unit: "short", quiet: true,
	description: "Events that were lost, by the reason. Should be 0.",
	queries:     []query{{`sum by (reason) (increase(eventseries_occurrences_dropped_total{$S}[$__rate_interval]))`, "{{reason}}"}},
}, {
	title: "Left out, and missed by watchers", unit: "short", quiet: true,
	description: "Events that were recorded without something that the API server would not take, and events that watchers within the process were too slow for.",
	queries: []query{
		{`sum by (part) (increase(eventseries_omissions_total{$S}[$__rate_interval]))`, "without {{part}}"},
		{`sum(increase(eventseries_watcher_events_dropped_total{$S}[$__rate_interval]))`, "missed by watchers"},
	},
}}}
