package heartbeat

import (
	"container/heap"
	"time"
)

// queue is a priority queue of items, the earliest first. Each item knows its
// index, so that it can move and leave in O(log n).
type queue[T any] struct {
	nodes []node[T]
	index func(T) *int32 // where an item keeps its index in nodes, plus one; zero: not in the queue
}

type node[T any] struct {
	at   time.Duration
	item T
}

// The functions Push, Pop, and Remove of container/heap box each node in an
// interface, which allocates. The methods below need heap.Fix alone.
var _ heap.Interface = (*queue[struct{}])(nil)

func (q *queue[T]) Len() int           { return len(q.nodes) }
func (q *queue[T]) Less(i, j int) bool { return q.nodes[i].at < q.nodes[j].at }
func (q *queue[T]) Push(x any)         { q.add(x.(node[T])) }
func (q *queue[T]) Pop() any           { return q.remove(q.nodes[len(q.nodes)-1].item) }

func (q *queue[T]) Swap(i, j int) {
	q.nodes[i], q.nodes[j] = q.nodes[j], q.nodes[i]
	*q.index(q.nodes[i].item), *q.index(q.nodes[j].item) = int32(i)+1, int32(j)+1
}

func (q *queue[T]) add(n node[T]) {
	q.nodes = append(q.nodes, n)
	*q.index(n.item) = int32(len(q.nodes))
	heap.Fix(q, len(q.nodes)-1)
}

// at returns the node of item, which must be in the queue.
func (q *queue[T]) at(item T) *node[T] { return &q.nodes[*q.index(item)-1] }

// move changes the time of item, which must be in the queue.
func (q *queue[T]) move(item T, at time.Duration) {
	i := int(*q.index(item)) - 1
	q.nodes[i].at = at
	heap.Fix(q, i)
}

// minRoom is the capacity below which a queue does not shrink.
const minRoom = 64

// remove removes item, which must be in the queue, and returns its node.
func (q *queue[T]) remove(item T) node[T] {
	i, last := int(*q.index(item))-1, len(q.nodes)-1
	removed := q.nodes[i]
	q.Swap(i, last)
	*q.index(item) = 0
	q.nodes[last] = node[T]{} // do not keep the item alive
	q.nodes = q.nodes[:last]
	if i < last {
		heap.Fix(q, i)
	}
	if room := cap(q.nodes); room > minRoom && last < room/4 {
		q.nodes = append(make([]node[T], 0, room/2), q.nodes...)
	}
	return removed
}

// first returns the earliest node. The queue must not be empty.
func (q *queue[T]) first() node[T] { return q.nodes[0] }
