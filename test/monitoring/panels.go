package monitoring

// panel is a panel of the dashboard.
type panel struct {
	title       string
	description string
	unit        string // of Grafana
	stat        bool   // whether it shows only the latest value
	queries     []query
	// quiet means that all values are 0 in a healthy process and in the recording.
	quiet bool
}

// query is a query of a panel.
type query struct {
	expression string
	legend     string // may contain {{label}}
}

// rows are the rows of panels. $S is the selection of all variables.
var rows = [][]panel{{{
	title: "Occurrences", unit: "ops", stat: true,
	description: "Events that controllers emit per second.",
	queries:     []query{{`sum(rate(eventseries_occurrences_total{$S}[$__rate_interval]))`, ""}},
}, {
	title: "Requests", unit: "reqps", stat: true,
	description: "Requests per second that write them.",
	queries:     []query{{`sum(rate(eventseries_writes_total{$S}[$__rate_interval]))`, ""}},
}, {
	title: "Dropped", unit: "short", stat: true, quiet: true,
	description: "Events that were lost in the selected time range. Should be 0.",
	queries:     []query{{`sum(increase(eventseries_occurrences_dropped_total{$S}[$__range]))`, ""}},
}, {
	title: "Paused", unit: "short", stat: true,
	description: "Processes that pause because the API server asked them to.",
	queries:     []query{{`sum(eventseries_paused{$S})`, ""}},
}, {
	title: "Longest wait", unit: "s", stat: true,
	description: "The time that the first waiting series has waited to be written.",
	queries:     []query{{`max(eventseries_longest_wait_seconds{$S})`, ""}},
}, {
	title: "Fullest table", unit: "percentunit", stat: true,
	description: "How full the table of series is, in the process with the fullest table.",
	queries: []query{{
		`max(sum without (state) (eventseries_series{state=~"singleton|ongoing",$S}) / eventseries_series_capacity{$S})`, "",
	}},
}}, {{
	title: "Occurrences and requests", unit: "ops",
	description: "Emitted events, and the requests that they cost. The more loops there are, the greater the distance between the lines.",
	queries: []query{
		{`sum(rate(eventseries_occurrences_total{$S}[$__rate_interval]))`, "occurrences"},
		{`sum(rate(eventseries_writes_total{$S}[$__rate_interval]))`, "requests"},
	},
}, {
	title: "Requests by outcome", unit: "reqps",
	description: "written is a success. taken, gone and changed are part of the life of an Event. The recorder retries pushedBack, troubled and denied requests. It drops refused ones.",
	queries:     []query{{`sum by (outcome) (rate(eventseries_writes_total{$S}[$__rate_interval]))`, "{{outcome}}"}},
}}, {{
	title: "Paused", unit: "percentunit",
	description: "The share of time without writes because the API server asked for a pause, in the process with the longest pauses.",
	queries:     []query{{`max(rate(eventseries_paused_seconds_total{$S}[$__rate_interval]))`, "paused"}},
}, {
	title: "Waiting", unit: "short",
	description: "Series that wait to be written, and those of them that are in the queue now.",
	queries: []query{
		{`sum(eventseries_waiting_series{$S})`, "waiting"},
		{`sum(eventseries_queue_length{$S})`, "in the queue"},
	},
}}, {{
	title: "Longest wait", unit: "s",
	description: "The time that the first waiting series has waited to be written, in the slowest process.",
	queries:     []query{{`max(eventseries_longest_wait_seconds{$S})`, "longest wait"}},
}, {
	title: "Duration of requests", unit: "s",
	description: "The duration of requests, including failed ones.",
	queries: []query{
		{`histogram_quantile(0.5, sum by (le) (rate(eventseries_request_duration_seconds_bucket{$S}[$__rate_interval])))`, "median"},
		{`histogram_quantile(0.99, sum by (le) (rate(eventseries_request_duration_seconds_bucket{$S}[$__rate_interval])))`, "99 %"},
	},
}}, {{
	title: "Series", unit: "short",
	description: "Tracked series: singletons, ongoing series, and finished series that wait for their last write.",
	queries:     []query{{`sum by (state) (eventseries_series{$S})`, "{{state}}"}},
}, {
	title: "Series of earlier processes", unit: "ops",
	description: "Series that continue the Event of an earlier process: adopted by name, or restored by listing.",
	queries: []query{
		{`sum(rate(eventseries_series_adopted_total{$S}[$__rate_interval]))`, "adopted"},
		{`sum(rate(eventseries_series_restored_total{$S}[$__rate_interval]))`, "restored"},
	},
}}, {{
	title: "Requests by kind", unit: "reqps",
	description: "The purpose of requests. A running series takes one heartbeat per 30 minutes.",
	queries:     []query{{`sum by (kind) (rate(eventseries_writes_total{$S}[$__rate_interval]))`, "{{kind}}"}},
}, {
	title: "Reasons and actions", unit: "short",
	description: "Distinct reasons and actions of created Events, in the process with the most. Should be a few dozen, and not grow.",
	queries:     []query{{`max by (field) (eventseries_distinct_values{$S})`, "{{field}}"}},
}}, {{
	title: "Dropped", unit: "short", quiet: true,
	description: "Lost events by reason. Should be 0.",
	queries:     []query{{`sum by (reason) (increase(eventseries_occurrences_dropped_total{$S}[$__rate_interval]))`, "{{reason}}"}},
}, {
	title: "Omissions, and drops of watchers", unit: "short", quiet: true,
	description: "Events that were recorded without a part that the API server rejects, and events that slow watchers within the process missed.",
	queries: []query{
		{`sum by (part) (increase(eventseries_omissions_total{$S}[$__rate_interval]))`, "without {{part}}"},
		{`sum(increase(eventseries_watcher_events_dropped_total{$S}[$__rate_interval]))`, "missed by watchers"},
	},
}}}
