package events

import (
	"sync"
	"time"
)

// Histogram says how long requests took.
type Histogram struct {
	// Count is the number of requests, and Sum the time that they took together.
	Count uint64
	Sum   time.Duration
	// Buckets have ascending bounds, the same ones in all histograms. What took
	// longer than the last is in Count alone.
	Buckets []Bucket
}

// Bucket is a part of a Histogram.
type Bucket struct {
	// Bound is how long the requests took that Count counts, at most.
	Bound time.Duration
	// Count is the number of requests, those of smaller buckets included.
	Count uint64
}

// durationBounds are the buckets that client-go's rest_client_request_duration_seconds
// has in Kubernetes' components, so that one can be held against the other.
var durationBounds = [...]time.Duration{
	5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
}

// durations collects what a Histogram is made of. It may be used concurrently.
type durations struct {
	mu     sync.Mutex
	counts [len(durationBounds)]uint64 // each without those of smaller buckets
	count  uint64
	sum    time.Duration
}

func (d *durations) observe(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	d.sum += took
	for i, bound := range durationBounds {
		if took <= bound {
			d.counts[i]++
			return
		}
	}
}

func (d *durations) histogram() Histogram {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := Histogram{Count: d.count, Sum: d.sum, Buckets: make([]Bucket, len(durationBounds))}
	var n uint64
	for i, bound := range durationBounds {
		n += d.counts[i]
		h.Buckets[i] = Bucket{Bound: bound, Count: n}
	}
	return h
}
