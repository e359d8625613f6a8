package bench

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// usage is what the process has used so far. The difference of two is what was
// used in between.
type usage struct {
	wall, cpu     time.Duration
	allocs, bytes uint64
}

var began = time.Now()

// used returns what the process has used so far. It stops the world for a moment.
func used() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{wall: time.Since(began), cpu: cpuTime(), allocs: m.Mallocs, bytes: m.TotalAlloc}
}

func (u usage) since(before usage) usage {
	return usage{
		wall:   u.wall - before.wall,
		cpu:    u.cpu - before.cpu,
		allocs: u.allocs - before.allocs,
		bytes:  u.bytes - before.bytes,
	}
}

// cpuTime returns the user and system time of the process.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(fmt.Sprintf("bench: getrusage: %v", err)) // it has no reason to
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// liveHeap returns how many bytes of the heap are reachable.
func liveHeap() int64 {
	// What a finalizer held is freed by the collection after the one that ran it.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
