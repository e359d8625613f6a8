package heartbeat

import (
	stdheap "container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var sizes = []int{1_000, 100_000, 1_000_000}

// beat is the span over which the deadlines of the benchmarks are spread.
const beat = 30 * time.Minute

// filled returns n items and a function that gives each a deadline, in an
// order that has nothing to do with where they are in memory.
func filled(n int) (items []*item, each func(set func(*item, time.Time))) {
	rng := rand.New(rand.NewPCG(1, 2))
	items = make([]*item, n)
	for i := range items {
		items[i] = new(item)
	}
	rng.Shuffle(n, func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items, func(set func(*item, time.Time)) {
		for _, it := range items {
			set(it, start.Add(time.Duration(rng.Int64N(int64(beat)))))
		}
	}
}

// BenchmarkSet moves the deadline of any item to any other time.
func BenchmarkSet(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q Queue[*item]
			items, each := filled(n)
			each(q.Set)
			rng := rand.New(rand.NewPCG(3, 4))
			b.ReportAllocs()
			for b.Loop() {
				q.Set(items[rng.IntN(n)], start.Add(time.Duration(rng.Int64N(int64(beat)))))
			}
		})
	}
}

// BenchmarkInsert fills an empty queue, growth included.
func BenchmarkInsert(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			items, each := filled(n)
			b.ReportAllocs()
			for b.Loop() {
				for _, it := range items {
					*it = item{}
				}
				var q Queue[*item]
				each(q.Set)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
		})
	}
}

// BenchmarkNothingDue asks a queue in which nothing is due.
func BenchmarkNothingDue(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q Queue[*item]
			_, each := filled(n)
			each(q.Set)
			buf := make([]*item, 256)
			b.ReportAllocs()
			for b.Loop() {
				if q.PopDue(buf, start.Add(-time.Second)) != 0 {
					b.Fatal("early")
				}
			}
		})
	}
}

// BenchmarkPopDue is the life of a queue: the earliest item is taken, and gets
// its next deadline. The figure is for both.
func BenchmarkPopDue(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q Queue[*item]
			_, each := filled(n)
			each(q.Set)
			buf := make([]*item, 256)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				// With a time far ahead each call takes a full batch.
				next, _ := q.Next()
				got := q.PopDue(buf, next.Add(beat))
				for i, it := range buf[:got] {
					q.Set(it, next.Add(beat+time.Duration(i)))
				}
				done += got
			}
		})
	}
}

// BenchmarkPopDueContainerHeap is BenchmarkPopDue with container/heap.
func BenchmarkPopDueContainerHeap(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var q peer
			_, each := filled(n)
			each(func(it *item, at time.Time) {
				stdheap.Push(&q, node[*item]{at: int64(at.Sub(start)), item: it})
			})
			buf := make([]*item, 256)
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; {
				next := q[0].at
				for i := range buf {
					buf[i] = stdheap.Pop(&q).(node[*item]).item
				}
				for i, it := range buf {
					stdheap.Push(&q, node[*item]{at: next + int64(beat) + int64(i), item: it})
				}
				done += len(buf)
			}
		})
	}
}

// peer is the same queue of the same nodes as container/heap wants it.
type peer []node[*item]

func (p peer) Len() int           { return len(p) }
func (p peer) Less(i, j int) bool { return p[i].at < p[j].at }
func (p peer) Swap(i, j int) {
	p[i], p[j] = p[j], p[i]
	p[i].item.slot, p[j].item.slot = int32(i+1), int32(j+1)
}

func (p *peer) Push(x any) {
	n := x.(node[*item])
	n.item.slot = int32(len(*p) + 1)
	*p = append(*p, n)
}

func (p *peer) Pop() any {
	last := len(*p) - 1
	n := (*p)[last]
	(*p)[last] = node[*item]{}
	*p = (*p)[:last]
	n.item.slot = 0
	return n
}
