package bench

import (
	"slices"
	"time"
)

// Flood is how long Eventf takes while there is more to write than the server can
// keep up with. Times are in nanoseconds.
type Flood struct {
	Recorder string `json:"recorder"`
	// Latency is how long the server takes for each write.
	Latency time.Duration `json:"latency"`
	Series  int           `json:"series"`
	Calls   int           `json:"calls"`
	// Writes is how many writes the server took meanwhile.
	Writes int64         `json:"writes"`
	P50    time.Duration `json:"p50"`
	P99    time.Duration `json:"p99"`
	P999   Spread        `json:"p999"`
	Max    time.Duration `json:"max"`
}

// MeasureFlood emits n events about so many objects, in an order that makes new
// series, and series of singletons, all along, and measures each call. It does so a
// few times. Peers are measured as well, though they lose most of these events.
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
	liveHeap() // the collector starts from the same place each time
	for i := range took {
		// Every fourth is new until all are known; the others are somewhere among
		// those that are.
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
