// Package workload contains loops that emit the same event again and again, with the
// rhythms of real controllers. Tests and benchmarks share it.
//
// # Usage
//
//	for _, loop := range workload.Loops() {
//		for at := range loop.Until(4*time.Hour, seed) {
//			… // an occurrence at the time at
//		}
//	}
//
// A test with long histories runs [Some] of its cases, and a number of [Seeds].
//
// # Guarantees
//
//   - The times are a function of the seed. They never go back.
//   - Rate limiters and back-offs are those of Kubernetes' libraries.
//
// # Limitations
//
//   - A loop is one series. The events of one object that go together are not simulated.
package workload
