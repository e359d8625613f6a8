// Package chaos tests that recorders lose nothing: whatever happens to the server,
// its etcd, the network and the emitting processes, each occurrence that Eventf
// accepted reaches the server, with the right count.
//
//	make chaos
//	make chaos CHAOS_SEED=7 CHAOS_DURATION=2m
//
// The test kills, restarts and pauses a real control plane, cuts it off from its etcd
// and slows it down. The network between recorders and server refuses, resets, holds
// and delays. Meanwhile, several processes record a known number of occurrences. The
// test stops, kills and restarts them. The short run in the integration tests has the
// same faults.
//
// With -chaos.pushback, API Priority and Fairness of the server also rejects requests
// with 429 at times. With -chaos.metrics=FILE, emitters report their metrics, and the
// test writes what a Prometheus would have scraped to the file.
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
// In addition, count and time of an Event must never decrease, a Finished series must
// not change, and a key must not have more Events than series can have begun: one per
// process, and one for each sufficiently long quiet period.
//
// # Replaying
//
// The seed determines the schedule of the faults and the emitted occurrences. The test
// logs it. It does not determine what coincides within a millisecond, so a rare
// failure may take several runs to reproduce.
package chaos
