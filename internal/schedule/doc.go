// Package schedule decides which of many items takes the next request to a server. Each namespace
// is a client of its own: namespaces share the places for requests in flight, and nothing else. The
// package knows nothing of what the requests contain.
//
//   - An item has an exponential back-off.
//   - A namespace is sick while its latest request has failed, or takes long. Then it has few requests
//     in flight. Of its retries, three in a row can fail, and then it has one in each interval. For
//     how long the server asks, it has no requests.
//   - A request that takes longer than [SlowAfter] leaves its place to another one.
//   - Namespaces take turns. In a namespace, the earliest due goes first.
//
// All methods take O(log n), except Hurry, Failed, Backlog, and Sick. They allocate nothing, except
// Failed, Sick, and when a queue or a map grows.
package schedule
