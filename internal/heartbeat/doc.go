// Package heartbeat decides when the recorder does something about a series of
// Kubernetes events: when the next heartbeat is due ([Intervals]), and which of
// many series is handled next ([Schedule]). It does not decide what is written.
//
// # Usage
//
// Give each series a [Slot], and put it into a Schedule with [Schedule.Wait] or
// [Schedule.Ready]. Then call these in a loop:
//
//   - [Schedule.Due] returns series whose time to wait is over. Check each of them,
//     and call Wait or Ready again.
//   - [Schedule.Next] returns the series whose request is made next. When the
//     response arrives, call [Schedule.Done], and then Wait, Ready, or
//     [Schedule.Retry] with the delay that [Schedule.Backoff] returns.
//   - [Schedule.NextDue] and [Schedule.NextRequest] return until when to sleep if
//     both have no result.
//
// Requests for no series, such as a list, ask [Schedule.Admit] and report to
// [Schedule.Return]. A request that hangs is given up with [Schedule.Abandon].
//
// # Gates
//
// A response with the [Result] PushedBack closes the gate of the server: all
// requests wait, at first for 5 seconds, twice as long after each further
// push-back, at most for 5 minutes, but not less than the server asks for. Failed
// and Denied close a [Gate], which is one namespace and verb: from 1 second to 2
// minutes after failures, 2 minutes after a denial. Then one request probes. The
// others follow when it has passed. Requests that were sent before a gate closed
// do not make its delay longer, except by what the server asks for.
//
// # Guarantees
//
//   - A Schedule is pure: it starts no goroutine, reads no clock, and does no I/O.
//     The same calls with the same times have the same results.
//   - Each series is in exactly one of four places: idle, waiting, ready, or in
//     flight. [Schedule.Remove] removes it at once. The size of a Schedule is
//     bounded by its series and those in flight, plus the gates that closed in the
//     last minutes, and it does not keep removed series alive.
//   - No series is returned before its time.
//   - No class starves. If q requests per second are permitted, and N series are in
//     the Schedule, a request is made at most 4N/q after it is due: of four
//     requests in a row, at least one goes to the earliest series without a hard
//     deadline. New Warnings are due at once, and new Normals after 5 minutes. This
//     requires that no gate is closed for the series.
//   - If q exceeds the rate of heartbeats, n ongoing series per 30 minutes, a
//     heartbeat is at most n/3q late: with the deadline 33 minutes after the last
//     write, it arrives within 43 minutes, before the Event expires. This
//     requires that heartbeats succeed, and that series are written at most at the
//     rate q. A burst of b requests adds b/q.
//   - A series whose requests always fail does not hold up the others of its
//     namespace: it closes the gate, but retries later than they probe. Other
//     namespaces are not affected.
//   - Heartbeats of series that begin together are spread by [Intervals.Jitter]: the
//     busiest minute has 1.05 times the mean of 100,000 series, 1.13 times that of
//     10,000, and about 1.4 times that of 1,000.
//   - All methods take O(log n) and allocate nothing, except when a queue grows or a
//     gate closes. Next also takes O(log n) for each series that it finds behind a
//     closed gate; it finds each once while the gate is closed. [Schedule.Expired]
//     and [Schedule.Hurry] take time for each series or gate they look at.
//
// # Limitations
//
//   - A Schedule has room for 2147483646 series.
//   - A series can be in one Schedule at a time.
//   - Series of gates that have just opened become ready in batches of 64, so their
//     order is that of the due times in each batch only.
//   - If n heartbeats per 30 minutes exceed q, they get three quarters of the
//     requests, each series in its turn, and Events expire.
//   - The retry of a heartbeat has no hard deadline, so during overload it can arrive
//     after its Event has expired.
package heartbeat
