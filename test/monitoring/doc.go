// Package monitoring tests the dashboard and the alert rules for the metrics of a
// broadcaster, and draws what the dashboard shows for a recorded run of the chaos test.
//
//	make dashboard  # draws docs/monitoring/chaos.svg
//	make recording  # records another run first
//
// The tests evaluate each query of the dashboard and each alert over the recording,
// with the engine of Prometheus. They also run the unit tests of the alerts, which
// have the format of `promtool test rules`. The package is a separate module because of
// the dependencies of Prometheus. It imports only what compiles within a minute: no
// storage and no service discovery.
package monitoring
