package events

import (
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
)

// BenchmarkEventf emits an occurrence of an ongoing series.
func BenchmarkEventf(b *testing.B) {
	broadcaster := NewBroadcaster(newServer())
	recorder := broadcaster.NewRecorder(testScheme(), controller)
	pod := testPod(0)
	emit := func() { recorder.Eventf(pod, pod, "Warning", "BackOff", "Restarting", "note") }
	emit()
	emit()
	b.ReportAllocs()
	for b.Loop() {
		emit()
	}
}

// BenchmarkFilter alternates between a broadcaster without a filter and one with ten
// selectors, so that both see the same machine.
func BenchmarkFilter(b *testing.B) {
	emitter := func(filter func(series.Key) bool, reason string) func() {
		broadcaster := newBroadcaster(newServer(), Options{Filter: filter})
		recorder := broadcaster.NewRecorder(testScheme(), controller)
		pod := testPod(0)
		emit := func() { recorder.Eventf(pod, nil, "Warning", reason, "Restarting", "note") }
		emit()
		emit()
		return emit
	}
	filter := filterOf(b, tenSelectors...)
	emitters := map[string]func(){"without": emitter(nil, "BackOff"), "with": emitter(filter, "BackOff"), "filtered": emitter(filter, "Synced")}
	total := make(map[string]time.Duration)
	const batch = 1000
	for b.Loop() {
		for name, emit := range emitters {
			began := time.Now()
			for range batch {
				emit()
			}
			total[name] += time.Since(began)
		}
	}
	for name, took := range total {
		b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*batch), name+"-ns/occurrence")
	}
	b.ReportMetric(0, "ns/op")
}
