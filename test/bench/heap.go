package bench

import "runtime"

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
