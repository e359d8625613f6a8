// Package bench measures this recorder and client-go's tools/events and tools/record
// in one process, with the same work. Package report generates docs/benchmarks.md
// from the results. TestSuite runs all parts:
//
//	make bench        # all parts except the simulation
//	make simulation   # a million series over three hours of virtual time
//
// The measurements follow these rules:
//
//   - Recorders take turns, in an order that rotates every round, with a garbage
//     collection before each turn. Ratios compare turns of the same round. The
//     results contain their median and range.
//   - A turn ends when the recorder has processed the last occurrence on whatever
//     goroutine. No occurrence is lost. Each recorder documents how it knows.
//   - CPU is the user and system time of the process, garbage collection included.
//     Unlike wall time, it hardly depends on other load of the machine.
//   - Sinks are in memory and treat all recorders the same: they count and return.
//   - No client has a rate limit.
//   - [Floor] is the minimum that any recorder must do.
//
// The results come from one kind of machine. Only the part that restarts on a real
// API server involves a server.
//
// Measurements must not run concurrently: they read counters of the process.
package bench
