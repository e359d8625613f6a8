package bench

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

const (
	queueSize       = 1000 // of the queues in both broadcasters of client-go
	legacyCacheSize = 4096 // of the correlator in tools/record
)

// toolsEvents is client-go's tools/events. An event passes three goroutines and a
// queue. The recorder has processed an event when the unexported cache has counted it.
type toolsEvents struct {
	clientevents.EventBroadcaster
	recorder clientevents.EventRecorder
	cancel   context.CancelFunc

	mu    *sync.Mutex   // of the cache
	cache reflect.Value // a map to *eventsv1.Event
}

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
	regarding, related := s.objects()
	r.recorder.Eventf(regarding, related, corev1.EventTypeWarning, reason, action, note, noteArgs...)
}

// counted returns the number of occurrences in the cache.
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
// queues. The spam filter is the last step for an event. Its key function counts the
// events and otherwise does what the default does.
type toolsRecord struct {
	record.EventBroadcaster
	recorder  record.EventRecorder
	processed atomic.Int64
}

func newToolsRecord(to record.EventSink) *toolsRecord {
	r := &toolsRecord{}
	r.EventBroadcaster = record.NewBroadcaster(record.WithCorrelatorOptions(record.CorrelatorOptions{
		SpamKeyFunc: func(event *corev1.Event) string {
			key := spamKey(event)
			r.processed.Add(1)
			return key
		},
	}))
	r.StartRecordingToSink(to)
	r.recorder = r.NewRecorder(scheme.Scheme, corev1.EventSource{Component: controller}).WithLogger(logr.Discard())
	return r
}

// spamKey returns the key of source, object, and type, as client-go does.
func spamKey(event *corev1.Event) string {
	o := &event.InvolvedObject
	return strings.Join([]string{
		event.Source.Component, event.Source.Host, o.Kind, o.Namespace, o.Name, string(o.UID), o.APIVersion, event.Type,
	}, "")
}

// eventf omits related and the action: core/v1 recorders do not accept them.
func (r *toolsRecord) eventf(s *subject) {
	r.recorder.Eventf(s.regarding.Object, corev1.EventTypeWarning, reason, note, noteArgs...)
}

func (r *toolsRecord) counted() int64      { return r.processed.Load() }
func (*toolsRecord) tracked(begun int) int { return min(begun, legacyCacheSize) }
func (r *toolsRecord) close()              { r.Shutdown() }
