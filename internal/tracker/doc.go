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
// The phase says what is known about the Event of an entry. The next write follows
// from the phase, from the difference between spec and status, and from whether the
// entry accepts occurrences or is closing. A closing entry is forgotten as soon as
// there is nothing to write.
//
//	phase       next write
//	unwritten   create; recreate if the Event existed before
//	claiming    look at the Event that has the name, or close it
//	live        series, heartbeat, finish, flush, or nothing; then look at the Event
//	            under the base name, or make it a signpost, if this one has a unique name
//	conflicted  look at the own Event
//	refused     nothing; create with each heartbeat
//
// A response changes the phase as follows. "Own" and the other standings are
// explained at the type standing.
//
//	phase       response                      phase afterwards
//	unwritten   written                       live
//	unwritten   taken                         claiming
//	unwritten   refused                       refused, or forgotten if it is closing
//	claiming    written (look): own, shared,  live; closing if others have ended it
//	            or alive
//	claiming    written (look): dead          claiming (close it, or look at its successor),
//	                                          or unwritten with a unique name
//	claiming    written (look): stranger or   unwritten with a unique name
//	            tended
//	claiming    written, gone, refused        claiming (its successor), or unwritten with a
//	            (close)                       unique name
//	claiming    changed (close)               claiming (look again); the third time as if
//	                                          it were closed
//	claiming    gone (look)                   unwritten; the second time with a unique name
//	claiming    refused or denied (look)      claiming; the third time as for a stranger
//	live        written                       live, or forgotten if it is closing
//	live        gone                          unwritten, or forgotten if it is silent
//	live        changed                       conflicted
//	live        refused                       refused, or forgotten if it is closing
//	conflicted  written: the same Event       live, with what others have counted; closing if
//	                                          they have ended it
//	conflicted  written: another Event        as claiming, or forgotten if it is silent
//	conflicted  gone                          unwritten, or forgotten if it is silent
//	conflicted  refused                       conflicted; refused the third time
//	refused     written                       live
//	refused     taken                         claiming
//	refused     any other                     refused, or forgotten if it is closing
//	any         pushedBack, troubled, denied  the same, except as above
//
// A response to a write about the Event under the base name (look or signpost in the
// phase live) changes no phase.
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
