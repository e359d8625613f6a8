// Package monitoring has what belongs to the metrics of a broadcaster: the dashboard,
// the picture of what it shows in a recorded run of the chaos test, and the tests of
// the alert rules.
//
//	make dashboard  # write docs/monitoring/dashboard.json and chaos.svg
//	make recording  # record another run before
//
// The tests evaluate each query of the dashboard and each alert by Prometheus' own
// engine, over the recording, and the unit tests of the alerts, which are in the format
// of `promtool test rules`. It is a module of its own because of what Prometheus
// depends on, and imports of it what compiles within a minute: no storage, no service
// discovery.
package monitoring
