// Package tracker holds the active series of a recorder. The recorder is a controller,
// and a [Tracker] is its state: a table of machines, one for each series.
//
// The machine is what happens to one series: what an occurrence does, what to write next,
// and what a response means. An [Entry] is its state. It has
//
//   - a spec: what the Event should say;
//   - a status: what the server is known to say, and why a write is due;
//   - a phase: what is known about the Event;
//   - a life: what becomes of an occurrence;
//   - a hold: until when and why the series must not write.
//
// The functions of the machine take an entry and a step, which is the time and what the
// table knows, and return effects. They know no lock, no schedule, and no other series.
//
// The table has the entries of all series, their places in the schedule, the order of
// eviction, and what is known of names. It takes machines through steps, and then puts
// their entries where they belong. A Tracker is a lock around a table: each of its
// methods locks once. [Tracker.Advance] and [Tracker.Flush] lock for one part after the
// other, and [Tracker.Count] takes no lock.
//
// # Usage
//
// An occurrence goes to [Tracker.Count], which is enough for an ongoing series, or
// to [Tracker.Observe]. One loop drives the rest: [Tracker.Advance] handles
// heartbeats, ends, and retries that are due; [Tracker.Next] returns a [Write] to
// send; [Tracker.Apply] takes the result; [Tracker.Wake] says until when to sleep if
// nothing is observed or applied before.
//
// [Tracker.List] has the Events of earlier processes listed, if the cluster is not too large
// for that: Next returns Writes that ask, and one for each page. [Tracker.Restore] adds what
// a page contains. [Tracker.Flush],
// [Tracker.Seal], and [Tracker.Clear] are for a shutdown.
//
// # Files
//
// Read the files in this order. Almost every call goes to a file further down.
//
//	tracker.go     the methods, which lock, and call the table
//	list.go        lists of the Events of earlier processes
//	restore.go     what becomes of a listed Event
//	filter.go      ends series that are not accepted any more
//	table.go       begins series, takes steps, puts entries where they belong, ends series
//	evict.go       which series makes room
//	tally.go       how often each reason occurs
//	flush.go       who waits until the server knows everything
//	notes.go       series that differ in their notes only
//	directory.go   finds entries by their keys
//	apply.go       the machine: what a response means
//	claim.go       the machine: what to do about an Event that has the name
//	plan.go        the machine: what to write, and when
//	write.go       the machine: what a write says
//	machine.go     what machines have in common: rules, steps, phases
//	entry.go       the state of a machine
//	options.go     the options
//	hash.go        hashes of keys
//	index.go       a hash table that can be read while it changes
//	intern.go      how an entry stores its key
//	counter.go     the counter and the time of the latest occurrence, in one word
//	occurrence.go  the note and the annotations of an occurrence
//	drop.go        a loss
//	tombstones.go  what is known of names
//
// # Lives and phases
//
// The life of a series says what becomes of an occurrence:
//
//	accepting  counts it
//	resting    continues with it: the series has been quiet for its window, so it is over,
//	           but Options.MaxWindow has not passed since its latest occurrence
//	closing    begins another series with it, or, if this one was evicted, continues this
//	           one: it waits for its last write
//	forgotten  begins another series with it
//
// If the table is full, it evicts resting series first.
//
// The phase says what is known about the Event. The next write follows from the phase,
// and from what the Event lacks:
//
//	unwritten   create; recreate if the Event existed before
//	claiming    look at the Event that has the name, or close it
//	live        series, heartbeat, finish, flush, or nothing; then look at the Event
//	            under the base name, or make it a signpost, if this one has a unique name
//	conflicted  look at the own Event
//	refused     nothing; a create when its hold is over, which begins as unwritten
//
// A response changes phase and write as follows. The table shows one case of each; what
// a look finds has more, see the type standing. TestTransitions generates it.
//
//	phase: write               what follows from which responses; others change nothing
//	claiming: close            written, gone, taken, refused → unwritten: create; changed → claiming: look
//	claiming: look             written, gone, taken → unwritten: create; denied, changed, refused → same or unwritten: create
//	closing claiming: look     written, gone, taken → closing unwritten: create
//	closing conflicted: look   written, gone → closing unwritten: recreate or forgotten
//	closing live: finish       written → forgotten or same; gone → closing unwritten: recreate; changed → closing conflicted: look; taken → closing claiming: look; refused → forgotten
//	closing unwritten: create  written → forgotten or closing live: finish; taken → closing claiming: look; refused → forgotten
//	conflicted: look           written, gone → unwritten: recreate; refused → same or refused
//	live                       written → live: series; gone → unwritten: recreate; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: flush                written → live; gone → unwritten: recreate; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: heartbeat            written → live; gone → unwritten: recreate; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: look                 written, gone, refused → live
//	live: series               written → live; gone → unwritten: recreate; changed → conflicted: look; taken → claiming: look; refused → refused
//	live: successor            written, gone, refused → live; changed → live: look
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
// # Cost
//
// The index and the counter take no lock, because locks cost more. In these variants, 64
// shards have a sync.Mutex, an index, and plain fields. The time of an occurrence compared
// with this package, as medians of interleaved rounds in several processes on two cores:
//
//	                                     map of Go     this index   time of Count
//	1 series, 1 goroutine                    1.06x          1.00x           62 ns
//	1 series, 2 goroutines             0.6x to 1.5x   0.6x to 1.5x  44 to 135 ns
//	1,000 series, 1 goroutine           1.14x-1.20x          0.97x           83 ns
//	1,000 series, 2 goroutines          1.27x-1.37x    1.10x-1.29x   50 to 100 ns
//	100,000 series, 1 goroutine         1.07x-1.12x          0.98x          700 ns
//	100,000 series, 2 goroutines        1.13x-1.21x    1.02x-1.10x  290 to 410 ns
//	Eventf, 1 series, 2 goroutines      1.02x-1.33x    1.01x-1.47x   70 to 145 ns
//	Eventf, 1,000 series, 2 goroutines  1.10x-1.27x    1.04x-1.19x   79 to 130 ns
//
// The ranges are those of the machine: two processors, or two threads of one. The bytes per
// series are equal: 348 to 350 of 100,000. A lock for the counter alone, or for the index
// alone, takes as long as one for both.
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
//   - After each change, the schedule has the time at which the entry has something to do
//     next. So nothing waits for a call that never comes.
//   - A Tracker holds at most twice Options.Capacity entries, and those in flight.
//     Nothing else grows with the number of series that it has seen.
//   - A Normal never evicts a Warning that is not over. To evict a series that is over
//     loses nothing.
//
// # Limitations
//
// docs/design.md lists the limitations of the recorder, and the cases in which an occurrence
// counts twice. Besides:
//
//   - A count stays at 2147483647.
//   - Times are rounded down to microseconds, so a series can end a microsecond early.
//   - If a response was lost, and the series is dropped before the next response, a
//     [Drop] contains occurrences that an Event says, too.
//   - An evicted series continues in its Event if the base name leads there. A singleton
//     with a unique name begins another Event.
//   - Events are known by their names. An Event that was deleted and created by
//     somebody else under the same name is judged by what it says.
package tracker
