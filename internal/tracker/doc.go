// Package tracker holds the active series of a recorder, and decides what to write next. The
// recorder is a controller, and a [Tracker] is its state: one lock, and a table with one
// [Entry] for each key. An entry consists of
//
//   - a spec: what the Event should contain;
//   - a status: what the server is known to store;
//   - a phase: what is known of the Event;
//   - a life: what becomes of an occurrence.
//
// An occurrence goes to [Tracker.Count], which is enough for an ongoing series, or to
// [Tracker.Observe]. One loop drives the rest: [Tracker.Next] handles what is due, and returns a [Write] to
// send, and until when to sleep if nothing happens before; [Tracker.Apply] takes the response.
// The next write follows from the phase, and from the difference of spec and status. The tables of
// phases and lives are in docs/design.md.
//
// # Files
//
//	tracker.go     the methods, which lock
//	table.go       finds entries, and takes them through their steps
//	evict.go       which series makes room
//	entry.go       the state of a series, and what an occurrence changes
//	due.go         what to write next, and when
//	write.go       what a write contains
//	response.go    what a response means
//	look.go        what the Event means that answers a look
//	restore.go     what becomes of a listed Event
//	flush.go       who waits until the server knows everything
//	key.go         how entries store and find keys
//	notes.go       series that differ in their notes only
//	occurrence.go  the note and the annotations of an occurrence
//	tally.go       how often each reason occurs
//	options.go     the options, and a loss
//
// # Guarantees
//
//   - Nothing here starts a goroutine, reads a clock, does I/O, or calls code of the user under
//     a lock. The same calls with the same times have the same results.
//   - What was observed is in a write that Next returns, or in a [Drop] with a reason.
//   - Counts and times of one Event never go back. The Event of another key is never changed.
//   - A Tracker holds at most twice Options.Capacity entries, and those in flight. Nothing else
//     grows with the number of series that it has seen.
package tracker
