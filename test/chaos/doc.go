// Package chaos tests that nothing is lost: whatever happens to the server, its
// etcd, the network and the processes that emit, what Eventf took in is on the
// server in the end with the right count.
//
//	make chaos
//	make chaos CHAOS_SEED=7 CHAOS_DURATION=2m
//
// A real control plane is killed and started again on its data, paused, cut off
// from its etcd and slowed down. The network between it and the recorders
// refuses, resets, holds and delays. Several processes record a known number of
// occurrences meanwhile; they are stopped, killed, and started again. The short
// run that is part of the integration tests has the same faults.
//
// With -chaos.pushback the server answers with 429 now and then as well, by its own
// priority and fairness. With -chaos.metrics=FILE the emitters tell their metrics, and
// what a Prometheus would have scraped of them is written there.
//
// # The accounts
//
// An emitter says what it is about to emit before it does so, which of that a
// Flush has put on the server, what it is about to send, and what of that the
// server has acknowledged; all through a pipe that outlives it. So at the end there
// are two bounds for each key, between which the sum of the counts of all its Events
// on the server must lie. They are the same for a process that was shut down and
// dropped nothing. They differ
//
//   - for one that was killed: of what it had sent, the server may have written
//     what it has not acknowledged, or not;
//   - for one that ran out of time at its shutdown: of what it counts as dropped,
//     the request that was cut off may have been done all the same.
//
// Besides, an Event's count and time must never go back, a Finished one must stay
// as it is, and there must not be more Events of a key than series can have begun:
// one for each process, and one for each time that the key was quiet for long
// enough.
//
// # Replaying
//
// The seed decides which faults come when, and what is emitted. It is printed,
// and the same seed has the same schedule again. What meets what within a
// millisecond it does not decide, so a rare finding may take several runs.
package chaos
