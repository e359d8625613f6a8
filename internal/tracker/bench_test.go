package tracker

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("series=%d", n), func(b *testing.B) {
			tr, keys := ongoingSeries(b, n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				tr.Count(&keys[i], tr.offset(start))
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

func BenchmarkCountParallel(b *testing.B) {
	for name, n := range map[string]int{"same": 1, "different": 64} {
		b.Run(name, func(b *testing.B) {
			tr, keys := ongoingSeries(b, n)
			var next atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				k := keys[int(next.Add(1))%n]
				for pb.Next() {
					tr.Count(&k, tr.offset(start))
				}
			})
		})
	}
}

// Every occurrence is the first of its key, and makes room for itself.
func BenchmarkObserveNew(b *testing.B) {
	for _, tt := range []struct {
		name  string
		write bool
		times int
	}{{"written singletons", true, 1}, {"written series", true, 2}, {"unwritten, dropped", false, 1}} {
		b.Run(tt.name, func(b *testing.B) {
			const capacity = 10_000
			tr := New(Options{Capacity: capacity}, start)
			now := start
			observe := func(i int) {
				k := named("a", fmt.Sprint("pod-", i))
				now = now.Add(time.Microsecond)
				for range tt.times {
					tr.Observe(k, Occurrence{}, now)
					if tt.write {
						writeAll(tr, now, accept)
					}
				}
			}
			for i := range capacity {
				observe(i)
			}
			b.ReportAllocs()
			i := capacity
			for b.Loop() {
				observe(i)
				i++
			}
		})
	}
}
