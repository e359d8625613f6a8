package events

import "testing"

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
