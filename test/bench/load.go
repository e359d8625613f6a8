package bench

import (
	"cmp"
	"runtime"
	"slices"
	"time"
)

// Heap is the heap usage of running series, in bytes per series.
type Heap struct {
	Recorder string  `json:"recorder"`
	Series   int     `json:"series"`
	Shared   float64 `json:"shared"`  // while the caller keeps the objects with their strings
	Held     float64 `json:"held"`    // while only the recorder keeps the strings
	Tracked  int     `json:"tracked"` // series in the end; tools/record evicts series
}

// MeasureHeap measures a recorder with the given number of running series, all of
// them written. Objects are *ObjectReference and share no strings.
func MeasureHeap(name string, series int) Heap {
	h := Heap{Recorder: name, Series: series}
	subjects := references(series)
	h.Shared, h.Tracked = heapOf(name, series, func(i int) *subject { return &subjects[i] })
	runtime.KeepAlive(subjects)
	subjects = nil
	h.Held, _ = heapOf(name, series, func(i int) *subject {
		s := newSubject("ObjectReference", false, i)
		return &s
	})
	return h
}

func heapOf(name string, series int, subject func(i int) *subject) (bytes float64, tracked int) {
	before := liveHeap()
	d := newRecorder(name, series)
	defer d.close()
	d.begin(series, subject)
	bytes = float64(liveHeap()-before) / float64(series)
	return bytes, d.tracked(series)
}

// Flood is the duration of Eventf calls while the server cannot keep up with the
// writes. Times are in nanoseconds.
type Flood struct {
	Recorder string        `json:"recorder"`
	Latency  time.Duration `json:"latency"`        // of a write
	Full     int           `json:"full,omitempty"` // running series that fill the table at the start
	Series   int           `json:"series"`         // that begin
	Calls    int           `json:"calls"`
	Writes   int64         `json:"writes"` // during the calls
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
	P999     Spread        `json:"p999"`
	Max      time.Duration `json:"max"`
}

// MeasureFlood measures n calls in an order that starts the given number of series
// throughout. If full is not zero, as many other series run and fill the table, so each
// new one evicts another. The recorders of client-go lose most of these events.
func MeasureFlood(name string, full, series, n, rounds int, latency time.Duration) Flood {
	f := Flood{Recorder: name, Latency: latency, Full: full, Series: series, Calls: n}
	subjects := references(full + series)
	samples := make(samples)
	for range rounds {
		took, writes := flood(name, subjects, full, n, latency)
		slices.Sort(took)
		samples.add(&f.P999, float64(Quantile(took, 0.999)))
		f.P50, f.P99, f.Max = Quantile(took, 0.5), Quantile(took, 0.99), max(f.Max, took[len(took)-1])
		f.Writes = writes
	}
	samples.compute()
	return f
}

func flood(name string, subjects []subject, full, n int, latency time.Duration) (took []time.Duration, writes int64) {
	d := newRecorder(name, cmp.Or(full, len(subjects)))
	d.begin(full, func(i int) *subject { return &subjects[i] })
	before := d.sink.writes()
	d.sink.latency.Store(int64(latency))
	took = make([]time.Duration, n)
	liveHeap() // each round starts with a collected heap
	for i := range took {
		// Every fourth call starts a series, until all have started.
		known := min(full+i/4+1, len(subjects))
		at := known - 1
		if i%4 != 0 {
			at = i * 7919 % known
		}
		s := &subjects[at]
		begin := time.Now()
		d.eventf(s)
		took[i] = time.Since(begin)
	}
	writes = d.sink.writes() - before
	d.sink.latency.Store(0)
	d.close()
	return took, writes
}
