// Package series says what a series of Kubernetes events is: what tells two
// events apart (Key), what state a series is in (State), what an occurrence does
// to it (Table), and how it looks as an events.k8s.io/v1 Event (Series).
//
// # Usage
//
// A Table is the desired state of a controller whose actual state is the Events
// on the API server. An occurrence goes in by Count, which is enough for a series
// that is running, or by Observe, which returns the entries that have become
// dirty. A worker takes a dirty entry, asks Begin what there is to write, sends
// it, and says what became of it:
//
//	eff := table.Observe(&key, series.Occurrence{Note: "back-off 10s"}, now)
//	for _, entry := range eff.Dirty {
//		write, _, ok := table.Begin(entry, now)
//		if !ok {
//			continue
//		}
//		// … send write.Series.Event() or write.Series.Patch() …
//		again, _ := table.Written(entry, write, now)
//	}
//
// An Event that an earlier process wrote may stand under the name that a new series
// wants. Then the create is Taken, and a WriteLook follows, whose answer goes to
// Found: the series goes on in that Event, or takes another name. Restore takes in
// what was found by listing.
//
// Deadlines are for others to keep (package heartbeat does): when one has come,
// they call Expire or Beat.
//
// # Guarantees
//
//   - Nothing here starts a goroutine, reads a clock, does I/O or calls code of
//     the user. The same calls with the same times have the same results.
//   - What was observed is in a write that Begin returns sooner or later, or in
//     Effects.Dropped with a reason.
//   - The writes of an entry are absolute: a later one has all that an earlier
//     one had. Counts and times in them never go back.
//   - One Event is that of one entry at a time. What is not of a key is not
//     changed for it.
//   - resourceVersion is no part of a key, and a key has the same Hash in every
//     process.
//   - A Table holds at most twice Options.Capacity entries, unless more writes
//     than that are under way.
//
// # Limitations
//
//   - A count stays at 2147483647 once it is there.
//   - The time of an occurrence is rounded down to microseconds, which is what an
//     Event has. So a window can be over up to a microsecond early.
//   - Of the notes of a running series one is kept in ten seconds
//     (Options.NoteInterval).
//   - Where instances share their series, what two of them write to one Event at the
//     same time is added up, which takes two requests more each time. If the answer to
//     a write is lost as well, some of it can be counted twice. It is for changes of
//     the leader, not for two that emit side by side.
//   - Events are known by their names: one that was deleted, and then made by
//     somebody else under the same name, is written to as if it was still there.
package series
