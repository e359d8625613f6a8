// Package schedule decides which of many items takes the next request to a server. It knows
// nothing of what the requests contain.
//
// Give each item a [Slot], and put it into a [Schedule] with [Schedule.Wait] or
// [Schedule.Ready]. [Schedule.Due] returns items whose time to wait is over, and
// [Schedule.Next] the item whose request is made next. [Schedule.Done] takes the response.
// [Schedule.NextDue] and [Schedule.NextRequest] return until when to sleep.
//
// # Rules
//
//   - Order: the earliest due first. What has failed is due 5 minutes later: an item, what
//     waits in a namespace whose latest request has failed, and, after two failures in a
//     row there, what waits behind them. So what is likely to fail holds up nothing else.
//   - Item: each has its own exponential back-off, from 1 second to 2 minutes.
//   - Namespace: a bulkhead. While its latest request has failed or one takes long, it has
//     at most 2 requests in flight, and 1 of an item that has failed. After [Several]
//     failures in a row its new items have 2 requests per second.
//   - Budget: retries of all namespaces share 1 per second, fewer failures first. While
//     nothing passes anywhere, the interval doubles up to 2 minutes.
//   - Server: it is left alone for as long as it asks for, or after push-backs in several
//     namespaces. Then one request probes, the most promising one.
//
// All methods take O(log n) and allocate nothing, except when a queue or a map grows.
// [Schedule.Hurry], [Schedule.PendingSince], and a permission that arrives take O(n).
package schedule
