package heartbeat

import "time"

// Item is what can stand in a Queue: usually a pointer to a struct that has a
// field for its place in the queue.
type Item interface {
	comparable

	// Slot returns where the Queue keeps the item's place. It must be the same
	// address each time, must belong to this item alone and is zero while the
	// item is in no queue. Only the Queue may write to it.
	Slot() *int32
}

// Queue holds one deadline for each of its items and yields those that have
// come, the earliest first. Items with the same deadline come in any order.
//
// The zero value is an empty queue that is ready for use. A Queue must not be
// copied after its first use, and it is not safe for concurrent use: it
// belongs behind the lock of whoever owns the items.
//
// Within the queue a deadline is the distance to the first one that was ever
// set. Distances are measured by the monotonic clock where the times carry its
// reading, so a wall clock that jumps moves no deadline. Times more than 292
// years from that first one are taken as that far.
type Queue[T Item] struct {
	epoch time.Time
	heap  heap[T]
}

// Len returns the number of items in the queue.
func (q *Queue[T]) Len() int { return q.heap.len() }

// Set gives item the deadline at: an item that is not in the queue comes in,
// one that is there moves, to an earlier or a later time. It takes O(log n).
//
// Set panics if the item is in another queue.
func (q *Queue[T]) Set(item T, at time.Time) {
	if q.epoch.IsZero() {
		q.epoch = at
	}
	q.heap.set(node[T]{at: q.sinceEpoch(at), item: item})
}

// Remove takes item out of the queue. It does nothing if the item is in none.
// It takes O(log n).
//
// Remove panics if the item is in another queue.
func (q *Queue[T]) Remove(item T) {
	if i := q.heap.find(item); i != 0 {
		q.heap.remove(i)
	}
}

// PopDue moves items whose deadline is at or before now from the queue into
// buf, the earliest first, and returns how many. It stops when buf is full, so
// the length of buf bounds how long the call takes; if the result is len(buf),
// there may be more. It takes O(log n) for each item, and O(1) if none is due.
func (q *Queue[T]) PopDue(buf []T, now time.Time) int {
	if q.Len() == 0 {
		return 0
	}
	limit := q.sinceEpoch(now)
	n := 0
	for n < len(buf) && q.Len() > 0 {
		first := q.heap.first()
		if first.at > limit {
			break
		}
		buf[n] = first.item
		n++
		q.heap.remove(root)
	}
	return n
}

// Next returns the earliest deadline in the queue, which may have passed; ok
// is false if the queue is empty. It takes O(1).
func (q *Queue[T]) Next() (at time.Time, ok bool) {
	if q.Len() == 0 {
		return time.Time{}, false
	}
	return q.epoch.Add(time.Duration(q.heap.first().at)), true
}

func (q *Queue[T]) sinceEpoch(t time.Time) int64 { return int64(t.Sub(q.epoch)) }
