// Package bench measures this recorder and client-go's tools/events and tools/record
// in one process, with the same work. Package report generates docs/benchmarks.md
// from the results. TestSuite runs all parts:
//
//	make bench        # all parts except the simulation
//	make simulation   # a million series over three hours of virtual time
//
// docs/benchmarks.md describes the method. All recorders do the same work and take
// turns. A turn ends when the recorder has processed the last occurrence; each
// implementation of recorder documents how it knows. No occurrence is lost.
//
// The results come from one kind of machine. Only the part that restarts on a real
// API server involves a server.
//
// Measurements must not run concurrently: they read counters of the process.
package bench
