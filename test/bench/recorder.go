package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
)

// Recorders are those that the measurements compare, in the order of the report.
var Recorders = []string{Ours, ToolsNew, ToolsOld}

// Names of the recorders in the results.
const (
	Ours     = "eventseries"
	ToolsNew = "tools/events"
	ToolsOld = "tools/record"
	Floor    = "floor with the time"
)

// recorder is a running recorder. Only one goroutine calls its methods, except for
// eventf of ours and of the floor.
type recorder interface {
	// eventf emits an event without waiting.
	eventf(s *subject)
	// tracked returns how many of the given number of series the recorder tracks.
	tracked(begun int) int
	close()
}

// queued is a recorder of client-go. It drops events if more than queueSize are in
// flight. The other recorders have processed an occurrence when eventf returns.
type queued interface {
	// counted returns the number of processed occurrences. A call takes at most about a
	// microsecond.
	counted() int64
}

// driver feeds a recorder without losing events.
type driver struct {
	recorder
	queued  queued // nil if the recorder has no queue
	sink    *sink
	emitted int64
}

// newRecorder starts the named recorder with room for the given number of series.
func newRecorder(name string, series int) *driver {
	d := &driver{sink: newSink()}
	switch name {
	case Ours:
		d.recorder = newOurs(d.sink, events.Options{Capacity: series})
	case ToolsNew:
		d.recorder = newToolsEvents(d.sink)
	case ToolsOld:
		d.recorder = newToolsRecord(coreSink{d.sink})
	case Floor:
		d.recorder = &floor{counts: make(map[floorKey]*floorEntry)}
	default:
		panic(fmt.Sprintf("bench: no recorder %q", name))
	}
	d.queued, _ = d.recorder.(queued)
	return d
}

// inBatches calls f for consecutive ranges of 0..n that fit into the recorder.
func (d *driver) inBatches(n int, f func(first, size int)) {
	batch := n
	if d.queued != nil {
		batch = queueSize
	}
	for first := 0; first < n; first += batch {
		f(first, min(batch, n-first))
	}
}

// emit emits n events about the subjects that next returns, and waits until the
// recorder has processed them.
func (d *driver) emit(n int, next func() *subject) {
	d.inBatches(n, func(_, size int) {
		for range size {
			d.eventf(next())
		}
		d.emitted += int64(size)
		d.settle()
	})
}

// settle waits until the recorder has processed all events.
func (d *driver) settle() {
	if d.queued == nil {
		return
	}
	for deadline := time.Now().Add(patience); d.queued.counted() < d.emitted; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("bench: client-go processed %d of %d events", d.queued.counted(), d.emitted))
		}
	}
}

// emitAbout emits n events about one subject.
func (d *driver) emitAbout(n int, s *subject) {
	d.emit(n, func() *subject { return s })
}

// begin starts a series for each of n subjects and waits until it is written.
func (d *driver) begin(n int, subject func(i int) *subject) {
	d.inBatches(n, func(first, size int) {
		for range 2 { // a create, then a patch that makes it a series
			for i := range size {
				d.eventf(subject(first + i))
			}
			d.emitted += int64(size)
			if _, ok := d.recorder.(*floor); !ok {
				d.sink.await(d.emitted)
			}
		}
	})
	d.settle()
}

// patience bounds every wait.
const patience = 5 * time.Minute

// must panics if setup for a measurement fails.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err))
	}
}

// ours is the recorder of this project.
type ours struct {
	*events.Broadcaster
	recorder events.EventRecorder
}

// newOurs starts a recorder of this project without a rate limit.
func newOurs(to events.EventSink, opts events.Options) *ours {
	opts.QPS = -1
	return startOurs(to, controller, opts)
}

// startOurs starts a recorder of a controller.
func startOurs(to events.EventSink, controller string, opts events.Options) *ours {
	opts.ShutdownTimeout = time.Second // sinks respond at once
	b, err := events.New(to, opts)
	must(err)
	must(b.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logr.Discard())))
	return &ours{Broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, controller)}
}

func (r *ours) eventf(s *subject) {
	regarding, related := s.objects()
	r.recorder.Eventf(regarding, related, corev1.EventTypeWarning, reason, action, note, noteArgs...)
}

func (r *ours) tracked(int) int { return r.Stats().Tracked }
func (r *ours) close()          { r.Shutdown() }
