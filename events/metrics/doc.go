// Package metrics exposes the statistics of a broadcaster to Prometheus.
//
// # Usage
//
// Register a collector for each broadcaster:
//
//	broadcaster := events.NewBroadcaster(sink)
//	registry.MustRegister(metrics.NewCollector(broadcaster, metrics.Options{}))
//
// Any registry works: [prometheus.DefaultRegisterer], or the one of
// sigs.k8s.io/controller-runtime/pkg/metrics, which a manager serves. docs/metrics.md
// explains each metric and what to do about it. There are a dashboard and alert rules,
// too.
//
// # Guarantees
//
//   - Names, units and labels follow https://prometheus.io/docs/practices/naming and the
//     instrumentation guidelines of Kubernetes.
//   - Of what callers of the recorder pass, labels contain only the namespaces in which requests fail, are
//     denied, slow, or paused: at most 10 at a time. Without [Options].ByReason, a broadcaster has
//     fewer than 200 time series at a time, no matter how many events there are.
//   - With [Options].ByReason, labels contain types and reasons, too. In the life of a broadcaster, these
//     metrics have at most 406 time series: for 200 reasons, and for all others together. Their sums
//     are exact.
//   - Counters of drops exist from the start, with the value 0, so that Prometheus sees
//     the first drop as an increase.
//   - A collector is safe for concurrent use, at any time: before the broadcaster starts
//     and after it shuts down. A scrape takes about 50 µs, sends no requests, starts no
//     goroutines, and does not slow down emitters.
//
// # Limitations
//
//   - Two broadcasters in one registry need different labels: use [Options.ConstLabels]
//     or [prometheus.WrapRegistererWith]. All of them count by reason, or none does.
//   - A collector does not end with its broadcaster. To register that of another one in its place, first
//     call Unregister of the registry.
//   - The metrics of one scrape may be some microseconds apart, so a sum of counters may
//     miss what happens in between.
package metrics
