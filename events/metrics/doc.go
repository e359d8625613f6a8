// Package metrics shows the statistics of a broadcaster to Prometheus.
//
// # Usage
//
//	broadcaster := events.NewBroadcaster(sink)
//	registry.MustRegister(metrics.NewCollector(broadcaster, metrics.Options{}))
//
// The registry can be any: prometheus.DefaultRegisterer, or that of
// sigs.k8s.io/controller-runtime/pkg/metrics, which a manager serves. What each metric
// means and what to do about it is in docs/metrics.md, beside a dashboard and alerts.
//
// # Guarantees
//
//   - Names, units and labels follow https://prometheus.io/docs/practices/naming and
//     Kubernetes' instrumentation guidelines.
//   - No label has anything in it that a caller of the recorder has passed: no names of
//     objects, no reasons, no notes, no annotations. A broadcaster has less than 200
//     time series, however many events there are.
//   - The counters of losses are there from the start with the value 0, so that the
//     first loss is an increase.
//   - A collector may be collected concurrently, at any time: before the broadcaster is
//     started and after it was shut down. It costs some 50 µs, makes no request, starts
//     no goroutine, and does not slow down the emitting of events.
//
// # Limitations
//
//   - Two broadcasters in one registry have to be told apart by Options.ConstLabels, or
//     by prometheus.WrapRegistererWith.
//   - What is said of one broadcaster may be some microseconds apart: a sum of counters
//     can be off by what happens meanwhile.
package metrics
