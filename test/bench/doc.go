// Package bench compares this recorder with client-go's tools/events and tools/record: an
// occurrence, the first event, memory, the load of a real server, and the requests of a large
// cluster. Each recorder does the same work in the same process. Package report generates
// docs/benchmarks.md from the results. TestSuite runs all parts:
//
//	make bench
//
// docs/benchmarks.md describes the method. Measurements must not run concurrently: they
// read counters of the process.
package bench
