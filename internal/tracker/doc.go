// Package tracker holds the active series of a recorder: what an occurrence does to
// a series, what to write next, and what a response means. The recorder is a
// controller, and a [Tracker] is its state: an [Entry] has a spec (what the Event of
// a series should say), a status (what the server is known to say), and a phase.
//
// # Usage
//
// An occurrence goes to [Tracker.Count], which is enough for an ongoing series, or
// to [Tracker.Observe]. One loop drives the rest: [Tracker.Advance] handles
// heartbeats, ends, and retries that are due; [Tracker.Next] returns a [Write] to
// send; [Tracker.Apply] takes the result; [Tracker.Wake] says until when to sleep if
// nothing is observed or applied before.
//
// [Tracker.Restore] adds what a list has found. [Tracker.Flush], [Tracker.Seal], and
// [Tracker.Clear] are for a shutdown.
//
// # Phases
//
// A series accepts occurrences. When it has been quiet for its window, it is over, and
// rests: an occurrence within Options.MaxWindow of the latest one continues it. Then, or
// if the table has no room for it, it is closing: it waits for its last write, and is
// forgotten.
//
// The phase says what is known about the Event. The next write follows from the phase,
// and from what the Event lacks:
//
//	unwritten   create; recreate if the Event existed before
//	claiming    look at the Event that has the name, or close it
//	live        series, heartbeat, finish, flush, or nothing; then look at the Event
//	            under the base name, or make it a signpost, if this one has a unique name
//	conflicted  look at the own Event
//	refused     nothing; create with each heartbeat
//
// A response changes phase and write as follows. The table shows one case of each; what
// a look finds has more, see the type standing.
//
//	phase: write               what follows from which responses; others change nothing
//	claiming: close            written, gone, taken, refused → unwritten: create; changed → claiming: look
//	claiming: look             written, gone, taken → unwritten: create; denied, changed, refused → same or unwritten: create
//	closing claiming: look     written, gone, taken → closing unwritten: create
//	closing conflicted: look   written, gone → closing unwritten: recreate
//	closing live: finish       written → forgotten or same; gone → closing unwritten: recreate; changed → closing conflicted: look; taken → closing claiming: look; refused → forgotten
//	closing refused            written → closing live: finish; pushedBack, troubled, denied, changed, refused → forgotten; gone → closing unwritten: create; taken → closing claiming: look
//	closing unwritten: create  written, refused → forgotten; taken → closing claiming: look
//	conflicted: look           written, gone → unwritten: recreate or forgotten; refused → same or refused
//	live                       written → live: series; gone → unwritten: recreate; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: flush                written → live; gone → unwritten: recreate; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: heartbeat            written → live; gone → unwritten: recreate or forgotten; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: look                 written, gone, refused → live
//	live: series               written → live; gone → unwritten: recreate; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: successor            written, gone, refused → live; changed → live: look
//	refused: create            written → live; gone → unwritten: create; taken → claiming: look; refused → refused
//	resting live: finish       written → resting live; gone → resting unwritten: recreate; changed → resting conflicted: look; taken → resting claiming: look; refused → forgotten
//	unwritten: create          written → live; taken → claiming: look; refused → refused
//	unwritten: recreate        written → live; taken → claiming: look; refused → refused
//
// # The write protocol
//
// A write says what is, not what has changed, so a later one contains all that an
// earlier one did. Each patch names the resourceVersion that it applies to, if the
// sink has returned one: a patch that the server applies late fails instead of
// overwriting newer data. A request without a response is sent again. If the first
// one was applied, the second fails as taken or changed, and a look tells what the
// server has. The Event is unchanged since the entry's last write only if its count
// and time equal an attempt that was sent. Everything else came from others, and is
// added to the count of the entry.
//
// # Guarantees
//
//   - Nothing here starts a goroutine, reads a clock, does I/O, or calls code of the
//     user under a lock. The same calls with the same times have the same results.
//   - What was observed is in a write that Next returns sooner or later, or in a
//     [Drop] with a reason.
//   - Counts and times of one Event never go back.
//   - An Event belongs to one entry at a time, and the Event of another key is never
//     changed.
//   - A Tracker holds at most twice Options.Capacity entries, and those in flight.
//     Nothing else grows with the number of series that it has seen.
//   - A Normal never evicts a Warning.
//
// # Limitations
//
//   - A count stays at 2147483647.
//   - Times are rounded down to microseconds, so a series can end a microsecond early.
//   - The note of an ongoing series is formatted once in ten seconds. With more than 10,000
//     series, 1,000 notes are formatted per second.
//   - If a response was lost, and another process writes to the Event before this one
//     looks, it is not known which part of the count is whose. What is new in the
//     attempts without a response can count twice then. It is lost only if the other
//     has written the same count and time: the microseconds name one process of 1,000.
//   - If a response was lost, and the series is dropped before the next response, a
//     [Drop] contains occurrences that an Event says, too.
//   - If an Event is deleted or expires while two processes write to it, and both
//     learn that before either creates it again, what it said counts twice.
//   - If the response to a create was lost, and the server then denies or refuses
//     three looks, the series continues in another Event. What the create said counts
//     twice then.
//   - An Event whose time is more than ten minutes ahead is not continued.
//   - Events are known by their names. An Event that was deleted and created by
//     somebody else under the same name is judged by what it says.
package tracker
