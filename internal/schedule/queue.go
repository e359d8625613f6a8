package schedule

import (
	"math"
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

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.nodes) }

// Add adds item, which must be in no queue.
func (q *Queue[T]) Add(item T, at time.Duration) {
	q.nodes = append(q.nodes, node[T]{at, item})
	q.fix(len(q.nodes) - 1)
}

// At returns the time of item, which must be in the queue.
func (q *Queue[T]) At(item T) time.Duration { return q.nodes[*q.index(item)-1].at }

// Move changes the time of item, which must be in the queue.
func (q *Queue[T]) Move(item T, at time.Duration) {
	i := int(*q.index(item)) - 1
	q.nodes[i].at = at
	q.fix(i)
}

// fix moves the node at i, whose time has changed, to its place in the heap.
// container/heap would write both nodes and both indexes at each step.
func (q *Queue[T]) fix(i int) {
	n := q.nodes[i]
	for i > 0 {
		parent := (i - 1) / 2
		if q.nodes[parent].at <= n.at {
			break
		}
		q.set(i, q.nodes[parent])
		i = parent
	}
	for {
		child := 2*i + 1
		if right := child + 1; right < len(q.nodes) && q.nodes[right].at < q.nodes[child].at {
			child = right
		}
		if child >= len(q.nodes) || n.at <= q.nodes[child].at {
			break
		}
		q.set(i, q.nodes[child])
		i = child
	}
	q.set(i, n)
}

func (q *Queue[T]) set(i int, n node[T]) {
	q.nodes[i] = n
	*q.index(n.item) = int32(i) + 1
}

// minRoom is the capacity below which a queue does not shrink.
const minRoom = 64

// Remove removes item, which must be in the queue.
func (q *Queue[T]) Remove(item T) {
	i, last := int(*q.index(item))-1, len(q.nodes)-1
	*q.index(item) = 0
	q.nodes[i] = q.nodes[last]
	q.nodes[last] = node[T]{} // do not keep the item alive
	q.nodes = q.nodes[:last]
	if i < last {
		q.fix(i)
	}
	if room := cap(q.nodes); room > minRoom && last < room/4 {
		q.nodes = append(make([]node[T], 0, room/2), q.nodes...)
	}
}

// First returns the earliest item. The queue must not be empty.
func (q *Queue[T]) First() T { return q.nodes[0].item }

const never = math.MaxInt64

// first returns the time of the earliest item, or never.
func (q *Queue[T]) first() time.Duration {
	if len(q.nodes) == 0 {
		return never
	}
	return q.nodes[0].at
}

// move moves item from the queue *in to another one, and sets *in. Each can be nil for none.
func move[T any](item T, in **Queue[T], to *Queue[T], at time.Duration) {
	if *in == to && to != nil {
		to.Move(item, at)
		return
	}
	if *in != nil {
		(*in).Remove(item)
	}
	if *in = to; to != nil {
		to.Add(item, at)
	}
}
