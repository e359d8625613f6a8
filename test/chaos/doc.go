// Package chaos tests that recorders lose nothing: whatever happens to the server,
// its etcd, the network and the emitting processes, each occurrence that Eventf
// accepted reaches the server, with the right count.
//
//	make chaos
//	make chaos CHAOS_SEED=7 CHAOS_DURATION=2m
//	make chaos CHAOS_FROM=v1.30.4
//	make chaos CHAOS_SECOND=v1.30.4
//
// Two API servers with one etcd serve the same cluster, and each request goes to any of
// them. The test kills, restarts and pauses the one with the etcd, or the other one
// alone, so a request that a recorder has given up may still be executed after its
// retry. It cuts both off from their etcd and slows them down. The servers push back,
// and deny or fail what is written to one of two namespaces. The network between
// recorders and servers refuses, resets, holds and delays. A load balancer answers with
// pages of its own and loses answers to creates. Meanwhile, several processes with
// different clocks record a known number of occurrences. The test stops, kills and
// restarts them, and lets two leaders record at once. The short run in the integration
// tests has the same faults. With CHAOS_FROM, the server with the etcd begins as an
// older one, which is upgraded when half of the duration is over. With CHAOS_SECOND,
// the other one is older.
//
// At the end, the test lists the faults that it has tried, how many requests were in
// flight during each kind, and how many of those failed.
//
// # Accounting
//
// An emitter reports occurrences before it emits them, which of them a Flush has
// written, what it is about to send, and what the server has acknowledged. The reports
// go through a pipe that outlives the process. At the end, they yield a lower and an
// upper bound for each key. The sum of the counts of its Events on the server must lie
// between them. For a process that shut down without drops, the bounds are equal. They
// differ
//
//   - for a killed process: the server may have executed requests that it did not
//     acknowledge;
//   - for a process that exceeded its shutdown timeout: the server may have executed
//     the canceled request of occurrences that count as dropped.
//
// If a process gets no answer, and another one writes before it looks, the limitations
// of package tracker permit that occurrences count twice. The reports yield the maximum
// for each key. The test counts what exceeds the upper bound by at most that much. Less
// than the lower bound is always an error.
//
// In addition, count and time of an Event must never decrease, a Finished series must
// not change without an occurrence, and a key must not have more Events than series can have begun: one per
// process, and one for each sufficiently long quiet period. If processes overlap, one
// adds to the count of a series that the other has finished, and there are more Events.
// The heap of a process must stay small.
//
// # Replaying
//
// The seed determines the schedule of the faults and the emitted occurrences. The test
// logs it. It does not determine what coincides within a millisecond, or which requests
// the load balancer spares, so a rare failure may take several runs to reproduce.
package chaos
