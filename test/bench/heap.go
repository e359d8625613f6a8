package bench

import "runtime"

// Heap is what ongoing series take of the heap, in bytes for each.
type Heap struct {
	Recorder string `json:"recorder"`
	Series   int    `json:"series"`
	// Shared is what they take while the caller keeps the objects, as a controller
	// does that has them in the cache of an informer: their strings are there anyway.
	Shared float64 `json:"shared"`
	// Held is what they take when nobody but the recorder keeps the strings.
	Held float64 `json:"held"`
	// Tracked is how many of them the recorder knows in the end. The legacy one
	// forgets.
	Tracked int `json:"tracked"`
}

// MeasureHeap measures a recorder with so many ongoing series, all of which are
// written. Objects are *ObjectReference, and none of their strings is another's.
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
