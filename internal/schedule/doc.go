// Package schedule decides which of many items takes the next request to a server: earliest due
// first, with bulkheads and a retry budget. It knows nothing of what the requests contain.
//
//   - Order: what has failed is due 5 minutes later: an item, for each of its failures; what
//     waits in a namespace whose latest request has failed; and, after two failures in a row
//     there, what waits behind them. So what is likely to fail holds up nothing else.
//   - Item: each has its own exponential back-off, from 1 second to 2 minutes.
//   - Namespace: a bulkhead. While its latest request has failed or one takes long, it has
//     2 requests in flight, and 1 of an item that has failed. After [Several] failures in a
//     row it has 2 requests per second. Before anything has passed, it has 1 in flight.
//   - Budget: retries of all namespaces share 1 per second, with a burst of 10. The interval
//     doubles, up to 2 minutes, with each that the server cannot handle. A retry that passes
//     fills the budget, and a new item that passes shortens the interval by a quarter.
//   - Server: it is left alone for as long as it asks for, or after push-backs in several
//     namespaces. Then one request probes, the most promising one.
//
// All methods take O(log n), except Hurry, PendingSince, and Done when a permission arrives.
// They allocate nothing, except when a queue or a map grows.
package schedule
