package bench

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// queued is how many events the queues of both of client-go's broadcasters hold.
const queued = 1000

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
	for deadline := time.Now().Add(patience); r.counted() < n; time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			panic(fmt.Sprintf("bench: tools/events has taken in %d of %d", r.counted(), n))
		}
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
