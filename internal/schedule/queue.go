package schedule

import (
	"container/heap"
	"math"
	"time"
)

// Never is the time of what does not happen.
const Never = math.MaxInt64

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

// Put adds item, which can be in this queue and in no other, or changes its time.
func (q *Queue[T]) Put(item T, at time.Duration) {
	i := int(*q.index(item)) - 1
	switch {
	case i < 0:
		i = len(q.nodes)
		q.nodes = append(q.nodes, node[T]{item: item})
		*q.index(item) = int32(len(q.nodes))
	case q.nodes[i].at == at:
		return
	}
	q.nodes[i].at = at
	heap.Fix((*nodes[T])(q), i)
}

// At returns the time of item, which must be in the queue.
func (q *Queue[T]) At(item T) time.Duration { return q.nodes[*q.index(item)-1].at }

// Remove removes item, which must be in the queue.
func (q *Queue[T]) Remove(item T) { heap.Remove((*nodes[T])(q), int(*q.index(item))-1) }

// First returns the earliest item. The queue must not be empty.
func (q *Queue[T]) First() T { return q.nodes[0].item }

// earliest returns the time of the first item, or Never.
func (q *Queue[T]) earliest() time.Duration {
	if len(q.nodes) == 0 {
		return Never
	}
	return q.nodes[0].at
}

// each calls do with the items up to a time that are at or below the node i, until it returns false.
func (q *Queue[T]) each(i int, until time.Duration, do func(T) (more bool)) (more bool) {
	return i >= len(q.nodes) || q.nodes[i].at > until || do(q.nodes[i].item) && q.each(2*i+1, until, do) && q.each(2*i+2, until, do)
}

// nodes implements heap.Interface.
type nodes[T any] Queue[T]

func (q *nodes[T]) Len() int           { return len(q.nodes) }
func (q *nodes[T]) Less(i, j int) bool { return q.nodes[i].at < q.nodes[j].at }
func (q *nodes[T]) Push(any)           { panic("unused: it would allocate") }

func (q *nodes[T]) Swap(i, j int) {
	q.nodes[i], q.nodes[j] = q.nodes[j], q.nodes[i]
	*q.index(q.nodes[i].item), *q.index(q.nodes[j].item) = int32(i)+1, int32(j)+1
}

// Pop removes the last node, and room that is no longer needed.
func (q *nodes[T]) Pop() any {
	last := len(q.nodes) - 1
	*q.index(q.nodes[last].item) = 0
	q.nodes[last] = node[T]{} // do not keep the item alive
	q.nodes = q.nodes[:last]
	if room := cap(q.nodes); room > 64 && last < room/4 {
		q.nodes = append(make([]node[T], 0, room/2), q.nodes...)
	}
	return nil
}

// move moves item from the queue *in to another one, and sets *in. Each can be nil for none.
func move[T any](item T, in **Queue[T], to *Queue[T], at time.Duration) {
	if *in != nil && *in != to {
		(*in).Remove(item)
	}
	if *in = to; to != nil {
		to.Put(item, at)
	}
}
