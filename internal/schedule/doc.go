// Package schedule decides which of many items takes the next request to a server. Each namespace
// is a client of its own, so no response in one delays another. It knows nothing of what the
// requests contain.
//
//   - What namespaces share: places for requests in flight, turns, and limits of retries while
//     none passes.
//   - Order: earliest due first. What is less likely to pass is due 5 minutes later: an item, for
//     each of its failures; all in a sick namespace; and, after [Several] failures in a row there, what
//     waits behind them.
//   - Item: its own exponential back-off, from 1 to 80 seconds; after a push-back to 16
//     seconds; if it is denied, to 5 and then 40 minutes; or to what the caller says.
//   - Namespace: a bulkhead. It is sick while its latest request has failed or one takes long:
//     then it has 2 requests in flight, and 1 of an item that has failed. After [Several]
//     failures in a row it has 2 requests per second. For how long the server asks, it has none.
//   - Retries: the first 3 in a row that fail in a namespace wait for nothing but their items,
//     later ones for an interval that doubles. One that passes ends it. Those of all namespaces
//     have such limits, too: one for those that have failed for about as long, so neither old
//     nor new failures of others delay them. The first retry of a namespace waits for none.
//   - Slow: a request that takes longer than [SlowAfter] leaves its place, up to [MaxSlow] of them.
//     While 16 do, namespaces that probably hang make none, and each of the rest one at a time.
//     In its namespace it keeps its place, unless it hangs: one request counts no more after a
//     minute, and one more after 2, 4, 8 minutes, and so on.
//
// All methods take O(log n) for each item that is due, except Hurry, PendingSince, Backlog, and
// Sick. They allocate nothing, except PendingSince, Sick, and when a queue or a map grows.
package schedule
