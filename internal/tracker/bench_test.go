package tracker

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/eventseries/eventseries/series"
)

// ongoing returns a table with so many Ongoing series, all written, and their
// keys.
func ongoing(b *testing.B, n int) (*Table, []series.Key) {
	b.Helper()
	table := NewTable(Options{Capacity: n}, start)
	keys := make([]series.Key, n)
	for i := range keys {
		keys[i] = *testKey("a")
		keys[i].Regarding.Name = fmt.Sprintf("some-deployment-5d4f8c7b9d-%05d", i)
	}
	for i := range keys {
		makeOngoing(b, table, &keys[i])
	}
	return table, keys
}

func makeOngoing(tb testing.TB, table *Table, k *series.Key) {
	e := table.Observe(k, Occurrence{Note: "back-off restarting failed container"}, start).Dirty[0]
	table.Observe(k, Occurrence{Note: "back-off restarting failed container"}, start)
	w, _, ok := table.Begin(e, start)
	if !ok {
		tb.Fatal("nothing to write")
	}
	table.Written(e, w, start)
}

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("series=%d", n), func(b *testing.B) {
			table, keys := ongoing(b, n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				table.Count(&keys[i], start)
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

func BenchmarkCountParallel(b *testing.B) {
	b.Run("same", func(b *testing.B) {
		table, keys := ongoing(b, 1)
		b.RunParallel(func(pb *testing.PB) {
			k := keys[0]
			for pb.Next() {
				table.Count(&k, start)
			}
		})
	})
	b.Run("different", func(b *testing.B) {
		table, keys := ongoing(b, 64)
		// As many keys as there are goroutines could meet in a shard, so each
		// takes the next that is in a shard of its own.
		taken := map[*shard]bool{}
		var apart []series.Key
		for _, k := range keys {
			if s := table.shard(k.FastHash(table.seed)); !taken[s] {
				taken[s] = true
				apart = append(apart, k)
			}
		}
		var next atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			k := apart[int(next.Add(1))%len(apart)]
			for pb.Next() {
				table.Count(&k, start)
			}
		})
	})
}

// Every occurrence is the first of its key and makes room for itself.
func BenchmarkObserveNew(b *testing.B) {
	for _, tt := range []struct {
		name  string
		write bool
		times int
	}{
		{"written singletons", true, 1},
		{"written series", true, 2},
		{"unwritten, dropped", false, 1},
	} {
		b.Run(tt.name, func(b *testing.B) {
			const capacity = 10_000
			table := NewTable(Options{Capacity: capacity}, start)
			now := start
			observe := func(i int) {
				k := *testKey("a")
				k.Regarding.UID = "" // numbered below, as an object's own
				k.Regarding.Name = fmt.Sprint("pod-", i)
				now = now.Add(time.Microsecond)
				for range tt.times {
					for _, e := range table.Observe(&k, Occurrence{}, now).Dirty {
						if !tt.write {
							continue
						}
						if w, _, ok := table.Begin(e, now); ok {
							table.Written(e, w, now)
						}
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

func BenchmarkFlushOfNothing(b *testing.B) {
	table, _ := ongoing(b, 100_000)
	for b.Loop() {
		if pending := table.Flush(); len(pending) > 0 {
			b.Fatal(len(pending))
		}
	}
}

func BenchmarkHash(b *testing.B) {
	k := testKey("a")
	for b.Loop() {
		k.Hash()
	}
}

// BenchmarkMemory reports what an Ongoing series takes that is written, without
// the strings of its key and notes, which are the caller's.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{100_000} {
		b.Run(fmt.Sprintf("series=%d", n), func(b *testing.B) {
			for b.Loop() {
				keys := make([]series.Key, n)
				for i := range keys {
					keys[i] = *testKey("a")
					keys[i].Regarding.Name = fmt.Sprintf("some-deployment-5d4f8c7b9d-%05d", i)
				}
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				table := NewTable(Options{Capacity: n}, start)
				for i := range keys {
					makeOngoing(b, table, &keys[i])
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/series")
				b.ReportMetric(float64(unsafe.Sizeof(Entry{})), "B/Entry")
				runtime.KeepAlive(table)
				runtime.KeepAlive(keys)
			}
		})
	}
}
