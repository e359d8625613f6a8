package events

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/safelog"
)

// StartEventWatcher calls handler with every event that is emitted from now on, one
// after the other, as an *eventsv1.Event that the handler owns. The broadcaster need
// not be started. A panic in handler is caught and logged.
//
// Up to 1,000 events wait for a slow handler; others are dropped and counted in
// [Stats].WatcherDropped. stop ends the watch; the handler still gets the events that
// wait. After [Broadcaster.Shutdown] the error is [ErrShutDown].
func (b *Broadcaster) StartEventWatcher(handler func(event runtime.Object)) (stop func(), err error) {
	if handler == nil {
		return nil, errors.New("events: event handler is nil")
	}
	return b.watchers.add(func(event *eventsv1.Event) {
		defer b.recoverAndLog("event handler")
		handler(event)
	})
}

// StartLogging logs every event that is emitted from now on to logger. Use logger.V(n) to set the
// verbosity. After [Broadcaster.Shutdown] the error is [ErrShutDown].
func (b *Broadcaster) StartLogging(logger klog.Logger) (stop func(), err error) {
	logger = safelog.Guard(logger)
	return b.watchers.add(func(event *eventsv1.Event) {
		logger.Info("Event occurred",
			"object", klog.KRef(event.Regarding.Namespace, event.Regarding.Name),
			"kind", event.Regarding.Kind, "apiVersion", event.Regarding.APIVersion,
			"type", event.Type, "reason", event.Reason, "action", event.Action, "note", event.Note)
	})
}

// StartStructuredLogging logs every event that is emitted from now on to klog's
// global logger at the given verbosity. After [Broadcaster.Shutdown] it does nothing.
//
// Deprecated: use [Broadcaster.StartLogging], as with client-go.
func (b *Broadcaster) StartStructuredLogging(verbosity klog.Level) func() {
	stop, err := b.StartLogging(klog.Background().V(int(verbosity)))
	if err != nil {
		b.logger().Error(err, "Cannot log events")
		return func() {}
	}
	return stop
}

// watcherQueue is the number of events that can wait for one watcher.
const watcherQueue = 1000

// watchers pass every occurrence to event handlers in this process. Each watcher has
// a bounded queue and a goroutine, so a slow handler delays neither emitters nor
// other handlers. If its queue is full, events for it are dropped.
type watchers struct {
	count   atomic.Int32  // of all; without watchers, no Event is built
	dropped atomic.Uint64 // see Stats.WatcherDropped

	mu     sync.RWMutex
	closed bool
	all    map[chan *eventsv1.Event]struct{} // the queues
	done   sync.WaitGroup
}

// add starts to call handle, which must not panic, with each occurrence. stop ends the watch;
// handle still gets the events in the queue. stop can be called more than once, and by handle.
func (ws *watchers) add(handle func(*eventsv1.Event)) (stop func(), err error) {
	queue := make(chan *eventsv1.Event, watcherQueue)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return nil, ErrShutDown
	}
	ws.all[queue] = struct{}{}
	ws.count.Add(1)
	ws.done.Go(func() {
		for event := range queue {
			handle(event)
		}
	})
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.stopLocked(queue)
	}, nil
}

// stopLocked ends one watcher. ws.mu is locked.
func (ws *watchers) stopLocked(queue chan *eventsv1.Event) {
	if _, ok := ws.all[queue]; ok {
		delete(ws.all, queue)
		ws.count.Add(-1)
		close(queue)
	}
}

// send sends a copy of event to each watcher whose queue has room.
func (ws *watchers) send(event *eventsv1.Event) {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	for queue := range ws.all {
		select {
		case queue <- event.DeepCopy():
		default:
			ws.dropped.Add(1)
		}
	}
}

// close ends all watchers, and refuses new ones. Handlers still get the events in
// their queues; the returned channel is closed when they have handled them.
func (ws *watchers) close() <-chan struct{} {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	for queue := range ws.all {
		ws.stopLocked(queue)
	}
	return ended(&ws.done)
}

// ended returns a channel that is closed when the group is done. It starts a
// goroutine that runs until then.
func ended(group *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}

// waitFor waits until done is closed or ctx ends. If both are the case, it returns nil.
func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	default:
		return ctx.Err()
	}
}
