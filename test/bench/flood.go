package bench

import (
	"slices"
	"time"
)

// Flood is the duration of Eventf calls while the server cannot keep up with the
// writes. Times are in nanoseconds.
type Flood struct {
	Recorder string `json:"recorder"`
	// Latency is the time that the server takes for a write.
	Latency time.Duration `json:"latency"`
	Series  int           `json:"series"`
	Calls   int           `json:"calls"`
	// Writes is the number of writes during the calls.
	Writes int64         `json:"writes"`
	P50    time.Duration `json:"p50"`
	P99    time.Duration `json:"p99"`
	P999   Spread        `json:"p999"`
	Max    time.Duration `json:"max"`
}

// MeasureFlood measures n calls about the given number of objects, in an order that
// starts new series throughout. The recorders of client-go lose most of these events.
func MeasureFlood(name string, series, n, rounds int, latency time.Duration) Flood {
	f := Flood{Recorder: name, Latency: latency, Series: series, Calls: n}
	subjects := references(series)
	var p999 []float64
	for range rounds {
		took, writes := flood(name, subjects, n, latency)
		slices.Sort(took)
		p999 = append(p999, float64(Quantile(took, 0.999)))
		f.P50, f.P99, f.Max = Quantile(took, 0.5), Quantile(took, 0.99), max(f.Max, took[len(took)-1])
		f.Writes = writes
	}
	f.P999 = SpreadOf(p999)
	return f
}

func flood(name string, subjects []subject, n int, latency time.Duration) (took []time.Duration, writes int64) {
	d := newRecorder(name, len(subjects))
	d.sink.latency = latency
	took = make([]time.Duration, n)
	liveHeap() // each round starts with a collected heap
	for i := range took {
		// Every fourth call starts a series, until all have started.
		known := min(i/4+1, len(subjects))
		at := known - 1
		if i%4 != 0 {
			at = i * 7919 % known
		}
		s := &subjects[at]
		begin := time.Now()
		d.eventf(s)
		took[i] = time.Since(begin)
	}
	writes = d.sink.writes()
	d.sink.hurry()
	d.close()
	return took, writes
}
