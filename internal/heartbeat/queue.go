package heartbeat

import (
	"container/heap"
	"time"
)

// Queue is a priority queue, the earliest item first. Items know their indexes, so they
// move and leave in O(log n). Make one with [NewQueue]. Not safe for concurrent use.
type Queue[T any] struct {
	nodes []node[T]
	index func(T) *int32
}

type node[T any] struct {
	at   time.Duration
	item T
}

// NewQueue returns an empty Queue. index returns where an item keeps its index in the
// queue, plus one; zero means that it is in none.
func NewQueue[T any](index func(T) *int32) Queue[T] { return Queue[T]{index: index} }

// byTime is the heap of a Queue. The functions Push, Pop, and Remove of container/heap
// box each node in an interface, which allocates. The Queue needs heap.Fix alone.
type byTime[T any] struct{ *Queue[T] }

func (q byTime[T]) Less(i, j int) bool { return q.nodes[i].at < q.nodes[j].at }
func (q byTime[T]) Push(any)           { panic("heartbeat: use Add") }
func (q byTime[T]) Pop() any           { panic("heartbeat: use Remove") }

func (q byTime[T]) Swap(i, j int) {
	q.nodes[i], q.nodes[j] = q.nodes[j], q.nodes[i]
	*q.index(q.nodes[i].item), *q.index(q.nodes[j].item) = int32(i)+1, int32(j)+1
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.nodes) }

// Add adds item, which must be in no queue.
func (q *Queue[T]) Add(item T, at time.Duration) {
	q.nodes = append(q.nodes, node[T]{at, item})
	*q.index(item) = int32(len(q.nodes))
	heap.Fix(byTime[T]{q}, len(q.nodes)-1)
}

// At returns the time of item, which must be in the queue.
func (q *Queue[T]) At(item T) time.Duration { return q.nodes[*q.index(item)-1].at }

// Move changes the time of item, which must be in the queue.
func (q *Queue[T]) Move(item T, at time.Duration) {
	i := int(*q.index(item)) - 1
	q.nodes[i].at = at
	heap.Fix(byTime[T]{q}, i)
}

// minRoom is the capacity below which a queue does not shrink.
const minRoom = 64

// Remove removes item, which must be in the queue.
func (q *Queue[T]) Remove(item T) {
	i, last := int(*q.index(item))-1, len(q.nodes)-1
	byTime[T]{q}.Swap(i, last)
	*q.index(item) = 0
	q.nodes[last] = node[T]{} // do not keep the item alive
	q.nodes = q.nodes[:last]
	if i < last {
		heap.Fix(byTime[T]{q}, i)
	}
	if room := cap(q.nodes); room > minRoom && last < room/4 {
		q.nodes = append(make([]node[T], 0, room/2), q.nodes...)
	}
}

// First returns the earliest item. The queue must not be empty.
func (q *Queue[T]) First() T { return q.nodes[0].item }

// first returns the time of the earliest item. The queue must not be empty.
func (q *Queue[T]) first() time.Duration { return q.nodes[0].at }
