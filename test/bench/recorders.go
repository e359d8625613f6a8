package bench

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/events"
)

// Names of the recorders, as they are reported.
const (
	Ours       = "eventseries"
	ToolsNew   = "tools/events"
	ToolsOld   = "tools/record"
	Floor      = "floor"
	FloorClock = "floor, and the time read"
)

// recorder is a recorder under measurement, which is running. Methods are called by
// one goroutine, unless it is said.
type recorder interface {
	// eventf emits an event and waits for nothing. Those of ours and the floor may
	// be called concurrently.
	eventf(s *subject)
	// batch is how many occurrences it has room for until they have been taken in.
	// Zero: any number.
	batch() int
	// settle returns when so many occurrences have been taken in since it was made.
	settle(n int64)
	// writes says whether it writes anything. Not the floor.
	writes() bool
	// tracked is how many it still knows of so many series that have begun.
	tracked(begun int) int
	// close ends it.
	close()
}

// driver feeds a recorder so that nothing is lost.
type driver struct {
	recorder
	sink    *sink
	emitted int64
}

// emit emits n events, each about the next subject, and returns when they have been
// taken in.
func (d *driver) emit(n int, next func() *subject) {
	for n > 0 {
		some := d.some(n)
		for range some {
			d.eventf(next())
		}
		n -= some
		d.emitted += int64(some)
		d.settle(d.emitted)
	}
}

// some is how many of n events may be emitted at a time.
func (d *driver) some(n int) int {
	if size := d.batch(); size > 0 {
		return min(n, size)
	}
	return n
}

// emitAbout emits n events about one subject.
func (d *driver) emitAbout(n int, s *subject) {
	d.emit(n, func() *subject { return s })
}

// begin makes ongoing series of the events about n subjects, which are all written
// when it returns.
func (d *driver) begin(n int, subject func(i int) *subject) {
	for first := 0; first < n; {
		some := d.some(n - first)
		for range 2 { // a create, then a patch that makes it a series
			for i := range some {
				d.eventf(subject(first + i))
			}
			d.emitted += int64(some)
			if d.writes() {
				d.sink.await(d.emitted)
			}
		}
		first += some
	}
	d.settle(d.emitted)
}

// newRecorder starts a recorder of a name, with room for so many series.
func newRecorder(name string, series int) *driver {
	d := &driver{sink: newSink()}
	switch name {
	case Ours:
		d.recorder = newOurs(d.sink, events.Options{
			Capacity: series,
			// One note in ten seconds is formatted of each series. In so short a time
			// as is measured, and with many series, that would be each one's.
			NoteInterval: time.Hour,
		})
	case ToolsNew:
		d.recorder = newToolsEvents(d.sink)
	case ToolsOld:
		d.recorder = newToolsRecord(d.sink)
	case Floor, FloorClock:
		d.recorder = &floor{counts: make(map[floorKey]*floorEntry), clock: name == FloorClock}
	default:
		panic(fmt.Sprintf("bench: no recorder %q", name))
	}
	return d
}

func (s *subject) about() (regarding, related runtime.Object) {
	if s.related != nil {
		related = s.related.Object
	}
	return s.regarding.Object, related
}

func (*floor) batch() int   { return 0 }
func (*floor) settle(int64) {}
func (*floor) writes() bool { return false }
func (*floor) close()       {}

func (f *floor) tracked(int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.counts)
}

// ours is this project's recorder. When Eventf returns, the occurrence has been
// counted, so there is nothing to wait for.
type ours struct {
	*events.Broadcaster
	recorder events.EventRecorder
}

// newOurs starts a recorder of this project without a limit of its requests, with
// options of which the rest is up to the caller.
func newOurs(to events.EventSink, opts events.Options) *ours {
	opts.QPS = -1
	opts.ShutdownTimeout = time.Second // nobody looks at what is written then
	b := events.NewBroadcasterWithOptions(to, opts)
	must(b.StartRecordingToSinkWithContext(klog.NewContext(context.Background(), logr.Discard())))
	return &ours{Broadcaster: b, recorder: b.NewRecorder(scheme.Scheme, controller)}
}

func (r *ours) eventf(s *subject) {
	regarding, related := s.about()
	r.recorder.Eventf(regarding, related, corev1.EventTypeWarning, reason, action, note, noteArgs...)
}

func (*ours) batch() int        { return 0 }
func (*ours) settle(int64)      {}
func (*ours) writes() bool      { return true }
func (r *ours) tracked(int) int { return r.Stats().Tracked }
func (r *ours) close()          { r.Shutdown() }

// toolsEvents is client-go's tools/events. An event passes three goroutines before
// it is in the cache, through a queue of 1,000 that drops what it has no room for.
// So no more than that are let in at a time, and it has taken in the last one when
// the counts in its cache say so. These are not exported; they are read under the
// lock of the cache, every pollInterval.
type toolsEvents struct {
	clientevents.EventBroadcaster
	recorder clientevents.EventRecorder
	cancel   context.CancelFunc

	mu    *sync.Mutex   // of the cache
	cache reflect.Value // a map to *eventsv1.Event
}

// queued is how many events the queues of both of client-go's broadcasters hold.
const queued = 1000

// pollInterval is the time between two looks at what has no way to say that it is
// done. A look takes about a microsecond.
const pollInterval = 100 * time.Microsecond

func newToolsEvents(to clientevents.EventSink) *toolsEvents {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	b := clientevents.NewBroadcaster(to)
	must(b.StartRecordingToSinkWithContext(ctx))
	impl := reflect.ValueOf(b).Elem()
	return &toolsEvents{
		EventBroadcaster: b,
		recorder:         b.NewRecorder(scheme.Scheme, controller).WithLogger(logr.Discard()),
		cancel:           cancel,
		mu:               (*sync.Mutex)(unsafe.Pointer(impl.FieldByName("mu").UnsafeAddr())),
		cache:            impl.FieldByName("eventCache"),
	}
}

func (r *toolsEvents) eventf(s *subject) {
	regarding, related := s.about()
	r.recorder.Eventf(regarding, related, corev1.EventTypeWarning, reason, action, note, noteArgs...)
}

func (*toolsEvents) batch() int { return queued }

func (r *toolsEvents) settle(n int64) {
	for r.counted() < n {
		time.Sleep(pollInterval)
	}
}

// counted returns how many occurrences the cache has counted.
func (r *toolsEvents) counted() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for all := r.cache.MapRange(); all.Next(); {
		event := (*eventsv1.Event)(all.Value().UnsafePointer())
		if event.Series == nil {
			n++
			continue
		}
		n += int64(event.Series.Count)
	}
	return n
}

func (*toolsEvents) writes() bool { return true }

func (r *toolsEvents) tracked(int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cache.Len()
}

func (r *toolsEvents) close() {
	r.cancel()
	r.Shutdown()
}

// toolsRecord is client-go's tools/record. An event passes two goroutines and two
// queues of 1,000 that drop what they have no room for, so no more than that are let
// in at a time. The last thing that is done to each is to ask its spam filter,
// whose key function can be set and counts here. It does what the default does.
type toolsRecord struct {
	record.EventBroadcaster
	recorder record.EventRecorder

	taken atomic.Int64
	want  atomic.Int64
	done  chan struct{} // has room for one
}

func newToolsRecord(to *sink) *toolsRecord {
	r := &toolsRecord{done: make(chan struct{}, 1)}
	r.EventBroadcaster = record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{
		SpamKeyFunc: func(event *corev1.Event) string {
			key := spamKey(event)
			if r.taken.Add(1) == r.want.Load() {
				r.done <- struct{}{}
			}
			return key
		},
	}))
	r.StartRecordingToSink(coreSink{to})
	r.recorder = r.NewRecorder(scheme.Scheme, corev1.EventSource{Component: controller}).WithLogger(logr.Discard())
	return r
}

// legacyCache is how many keys the correlator of tools/record remembers, if it is
// not told otherwise.
const legacyCache = 4096

// spamKey makes the key of the source and the object, as client-go does.
func spamKey(event *corev1.Event) string {
	o := &event.InvolvedObject
	return strings.Join([]string{
		event.Source.Component, event.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion,
	}, "")
}

// eventf leaves out related and the action, for which Events had no room then.
func (r *toolsRecord) eventf(s *subject) {
	r.recorder.Eventf(s.regarding.Object, corev1.EventTypeWarning, reason, note, noteArgs...)
}

func (*toolsRecord) batch() int { return queued }

func (r *toolsRecord) settle(n int64) {
	r.want.Store(n)
	if r.taken.Load() >= n {
		// It may have come to the end before it knew that this was the end.
		select {
		case <-r.done:
		default:
		}
		return
	}
	<-r.done
}

func (*toolsRecord) writes() bool { return true }

func (*toolsRecord) tracked(begun int) int { return min(begun, legacyCache) }

func (r *toolsRecord) close() { r.Shutdown() }

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("bench: %v", err)) // nothing that is measured can fail
	}
}
