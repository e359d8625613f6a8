// Package bench measures this recorder and client-go's tools/events and tools/record
// in one process, with the same work. Package report generates docs/benchmarks.md
// from the results. TestSuite runs all parts:
//
//	make bench        # all parts except the simulations
//	make simulation   # a million series over three hours of virtual time
//	make scale        # a cluster with 5,000 nodes
//
// docs/benchmarks.md describes the method. Measurements must not run concurrently: they
// read counters of the process.
package bench
