// Package schedule decides which of many items takes the next request to a server. Each namespace
// is a client of its own, so no response in one delays another. It knows nothing of what the
// requests contain.
//
//   - What namespaces share: places for requests in flight, turns, and a limit of retries while
//     none passes.
//   - Order: earliest due first. What is less likely to pass is due 5 minutes later: an item, for
//     each of its failures; all in a sick namespace; and, after two failures in a row there, what
//     waits behind them. Namespaces take turns: each request in flight makes the next one of
//     its namespace due a second later.
//   - Item: each has its own exponential back-off, from 1 second to 2 minutes; after a push-back
//     to 16 seconds; if it is denied, to 5 and then 40 minutes; or to what the caller says.
//   - Namespace: a bulkhead. It is sick while its latest request has failed or one takes long:
//     then it has 2 requests in flight, and 1 of an item that has failed. After [Several]
//     failures in a row it has 2 requests per second. For how long the server asks, it has none.
//   - Retries: the first 3 in a row that fail in a namespace wait for nothing but their items.
//     Then one waits for a second, and each later one twice as long, up to 2 minutes, or 16
//     seconds after a push-back. All retries follow the same rule, with 10 and up to a minute,
//     except those of a namespace in which no retry has failed. A retry that passes ends it.
//     One that the server handles otherwise, and a new item that passes, bring back the first
//     interval; for all, also a namespace that begins to fail. Those of namespaces that
//     are healthy, or have failed for less than 10 minutes, go first, but others that wait
//     have a turn each 10 minutes.
//   - Slow: a request that takes longer than [SlowAfter] leaves its place, up to [MaxSlow] of them.
//     While 16 do, namespaces that have failed so get no other one, and each of the rest has one.
//     In its namespace it keeps its place, unless it hangs: one request counts no more after a
//     minute, and one more after 2, 4, 8 minutes, and so on.
//
// All methods take O(log n) for each item that is due, except Hurry, PendingSince, Backlog, and
// Sick. They allocate nothing, except PendingSince, Sick, and when a queue or a map grows.
package schedule
