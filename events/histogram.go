package events

import (
	"sync"
	"time"
)

// Histogram is the distribution of request durations.
type Histogram struct {
	// Count is the number of requests.
	Count uint64
	// Sum is the total duration of all requests.
	Sum time.Duration
	// Buckets have ascending bounds, which are the same in all histograms. Requests
	// above the last bound are in Count only.
	Buckets []Bucket
}

// Bucket is one bucket of a [Histogram].
type Bucket struct {
	// Bound is the upper bound of the bucket, inclusive.
	Bound time.Duration
	// Count is the cumulative number of requests: those with a duration of at most
	// Bound.
	Count uint64
}

// durationBounds are the bounds of rest_client_request_duration_seconds in the
// components of Kubernetes, so that the two metrics can be compared.
var durationBounds = [...]time.Duration{
	5 * time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute,
}

// durations collects the data of a Histogram. It is safe for concurrent use.
type durations struct {
	mu     sync.Mutex
	counts [len(durationBounds)]uint64 // not cumulative
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
