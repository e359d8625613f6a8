// Package bench measures this recorder beside client-go's tools/events and
// tools/record, in one process, with the same work. docs/benchmarks.md is made of
// what it finds; TestSuite runs all parts:
//
//	make bench        # all but the next
//	make simulation   # a million series over three hours of virtual time
//
// What it keeps to:
//
//   - Recorders take turns, in an order that rotates from round to round, with a
//     collection before each turn. What slows the machine down slows all of them.
//     A ratio is taken within a round; of those, the median and the range are given.
//   - A turn ends when the recorder has taken in the last occurrence, whichever
//     goroutine does it, and nothing is lost on the way. How that is known is said
//     with each recorder.
//   - CPU is user and system time of the whole process, the collector's included,
//     as the kernel counts it. It hardly depends on what else the machine does;
//     wall time does.
//   - Sinks are in memory and do the same for all: they count and return.
//   - No recorder is held back by a rate limit of its client.
//   - The floor is the least that any recorder must do. See floor.
//
// Limitations: one kind of machine. Nothing is said about servers, but for the
// part that starts on a real one.
//
// Functions that measure must not run concurrently: they look at the process.
package bench
