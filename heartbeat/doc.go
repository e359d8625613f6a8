// Package heartbeat says when something is to be done about a series of
// Kubernetes events: when its next heartbeat is due, when it has finished, and
// when a singleton can be forgotten. What is then done, it leaves to others.
//
// # Usage
//
// [Intervals.Check] is the rule for one series: its status and a time go in,
// what is due comes out, or else when to look again. A [Queue] holds that time
// for each of many series. One goroutine with one timer serves them all:
//
//	var intervals heartbeat.Intervals // the defaults
//	var queue heartbeat.Queue[*series.Entry]
//	buf := make([]*series.Entry, 256)
//
//	for now := range ticks { // the time at which the timer fired
//		for n := len(buf); n == len(buf); {
//			n = queue.PopDue(buf, now)
//			for _, entry := range buf[:n] {
//				due, next := intervals.Check(statusOf(entry), now)
//				switch due {
//				case heartbeat.Heartbeat:
//					// … have it written: it is Waiting from now on
//					_, next = intervals.Check(statusOf(entry), now)
//				case heartbeat.Finish: // … close it
//				case heartbeat.Forget: // … forget it
//				}
//				if !next.IsZero() {
//					queue.Set(entry, next)
//				}
//			}
//		}
//		if next, ok := queue.Next(); ok {
//			// … set the timer to next
//		}
//	}
//
// A series is checked, and its deadline set, when it begins, when it becomes
// Ongoing, after each write of it, and when its deadline has come. When that was
// for a heartbeat, it is checked once more, for its end: the write may be a long
// time coming. It is not checked for an occurrence, which can only move the end
// of a series to a later time; the deadline that comes too early finds that out.
// So a hot loop never touches the queue.
//
// # Guarantees
//
//   - Nothing here starts a goroutine, sets a timer, reads a clock or does I/O.
//     The same calls with the same times have the same results.
//   - Nothing is due early: not before its time by the monotonic clock where the
//     times carry its reading, else by the wall clock.
//   - A series that is checked so gets each heartbeat and its end exactly when
//     they are due. Checked later, it gets one heartbeat for all that were
//     missed, or its end and none.
//   - PopDue takes O(log n) for each item that it returns and nothing for those
//     that are not due; Set and Remove take O(log n), Next and Len O(1).
//   - A million items that are pointers take 16.1 bytes each on a 64-bit machine.
//     A queue grows and shrinks in chunks of 64 KiB without moving the rest, so
//     no operation is slow because the queue is large; nothing but a chunk is
//     allocated; the room for more is at most one chunk and a half. What has
//     left the queue is not kept alive by it.
//
// # Limitations
//
//   - A queue has room for 2147483644 items.
//   - An item can be in one queue at a time.
//   - On most systems the monotonic clock stands still while the machine sleeps,
//     and deadlines with it.
//   - Where times carry no monotonic reading, a wall clock that is set ahead
//     brings deadlines forward, and one that is set back delays them, by as much.
package heartbeat
