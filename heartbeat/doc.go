// Package heartbeat decides when a writer of event series does something: when the
// next heartbeat of a series is due ([Intervals]), when a series that is quiet is over
// ([Window]), and which of many series is written next ([Schedule]). It does not decide
// what is written, and knows nothing of events: the items of a Schedule can be anything
// that takes a request now and then.
//
// # Usage
//
// Give each item a [Slot], and put it into a Schedule with [Schedule.Wait] or
// [Schedule.Ready]. [Schedule.Due] returns items whose time to wait is over, and
// [Schedule.Next] the item whose request is made next. [Schedule.Done] takes the result.
// [Schedule.NextDue] and [Schedule.NextRequest] say until when to sleep.
//
// A [Gate] is one namespace and verb. It is closed until a request has Passed, and again
// after one that was Denied, after the second in a row that Failed, and while one takes
// long ([Schedule.Slow]). One request at a time probes a closed gate, and opens it by
// passing. Items that have not failed go first, because the server can fail single ones.
// The others take turns, from 1 second to 2 minutes. PushedBack closes the gate for 5
// seconds to 5 minutes, or all gates if the server says for how long or pushes back in
// several namespaces.
//
// # Guarantees
//
//   - A Schedule is pure: it starts no goroutine, reads no clock, and does no I/O.
//   - Each series is in exactly one of four places: idle, waiting, ready, or in
//     flight. [Schedule.Remove] removes it at once, so the size of a Schedule is
//     bounded by its series and those in flight.
//   - No class starves while gates are open. With q requests per second and N
//     series, a request is made at most 4N/q after it is due: of four requests in a
//     row, at least one goes to the earliest series without a hard deadline.
//   - If q exceeds the rate of heartbeats, n ongoing series per 30 minutes, a
//     heartbeat is at most n/3q late: with the deadline 33 minutes after the last
//     write, it arrives within 43 minutes, before the Event expires.
//   - Items whose requests always fail do not hold up the others of their namespace for
//     long: an item that has not failed probes within 5 seconds, unless several arrive at
//     once or no request passes anywhere. Other namespaces are not affected.
//   - Heartbeats of series that begin together are spread by [Intervals.Jitter]: the
//     busiest minute has 1.05 times the mean of 100,000 series, and about 1.4 times
//     that of 1,000.
//   - A [Window] outlasts a loop whose period is at most 1,000 seconds, and one that
//     doubles its delays up to that, with 5 percent of jitter. With at least 6 minutes
//     and at most 36, a loop faster than 2 minutes is over after 6 minutes, and any
//     other after at most 2.5 times its period.
//   - All methods take O(log n) and allocate nothing, except when a queue grows or a
//     gate closes.
//
// # Limitations
//
//   - Items of gates that have just opened become ready in batches of 64, in the
//     order of their due times in each batch.
//   - If n heartbeats per 30 minutes exceed q, they get three quarters of the
//     requests, each series in its turn, and Events expire.
package heartbeat
