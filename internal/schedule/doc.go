// Package schedule decides which of many items takes the next request to a server: earliest due
// first, with bulkheads and a retry budget. It knows nothing of what the requests contain.
//
//   - Order: what is less likely to pass is due 5 minutes later: an item, for each of its
//     failures; all in a sick namespace; and, after two failures in a row there, what waits
//     behind them. So it holds up nothing else. Namespaces take turns: each request in flight
//     makes the next one of its namespace due a second later.
//   - Item: each has its own exponential back-off, from 1 second to 2 minutes; if it is denied,
//     to 5 and then 40 minutes; or to what the caller says.
//   - Namespace: a bulkhead. It is sick while its latest request has failed or one takes long:
//     then it has 2 requests in flight, and 1 of an item that has failed. After [Several]
//     failures in a row it has 2 requests per second. While 16 requests take long, sick
//     namespaces make none. A request that hangs for a minute does not count.
//   - Budget: retries of all namespaces share 1 per second, with a burst of 10. The interval
//     doubles, up to 2 minutes, with each that the server cannot handle. A retry that passes
//     fills the budget, and a new item that passes shortens the interval by a quarter.
//   - Server: it is left alone for as long as it asks for, or after push-backs in several
//     namespaces. Then one request probes, the most promising one.
//
// All methods take O(log n) for each item that is due, except Hurry, PendingSince, and Backlog.
// They allocate nothing, except PendingSince, and when a queue or a map grows.
package schedule
