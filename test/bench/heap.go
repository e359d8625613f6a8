package bench

import (
	"fmt"
	"runtime"
)

// Heap is the heap usage of running series, in bytes per series, beyond what the
// recorder takes with one series in each namespace.
type Heap struct {
	Recorder string  `json:"recorder"`
	Series   int     `json:"series"`
	Base     int64   `json:"base"`    // the recorder with one series in each namespace, in bytes
	Shared   float64 `json:"shared"`  // while the caller keeps the objects with their strings
	Held     float64 `json:"held"`    // while only the recorder keeps the strings
	Strings  float64 `json:"strings"` // the name and the UID of the object, and the note
	Tracked  int     `json:"tracked"` // series in the end; tools/record evicts series
}

// MeasureHeap measures a recorder with the given number of running series, all of
// them written. Objects are *ObjectReference and share no strings.
func MeasureHeap(name string, series int) Heap {
	pod := podNames(0)
	h := Heap{Recorder: name, Series: series, Strings: float64(len(pod.name) + len(pod.uid) + len(fmt.Sprintf(note, noteArgs...)))}
	subjects := references(series)
	shared := func(i int) *subject { return &subjects[i] }
	base, _ := heapOf(name, namespaces, shared)
	h.Base = int64(base)
	total, tracked := heapOf(name, series, shared)
	h.Shared, h.Tracked = (total-base)/float64(series-namespaces), tracked
	runtime.KeepAlive(subjects)
	subjects = nil
	total, _ = heapOf(name, series, func(i int) *subject {
		s := newSubject("ObjectReference", false, i)
		return &s
	})
	h.Held = (total - base) / float64(series-namespaces)
	return h
}

func heapOf(name string, series int, subject func(i int) *subject) (bytes float64, tracked int) {
	before := liveHeap()
	d := newRecorder(name, series)
	defer d.close()
	d.begin(series, subject)
	bytes = float64(liveHeap()) - float64(before)
	return bytes, d.tracked(series)
}
