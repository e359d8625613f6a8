package events

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

var errShutDown = errors.New("events: broadcaster has been shut down")

// watchers hands every occurrence to functions in this process. Each has a
// bounded queue and a goroutine of its own, so that a slow one holds up neither
// who emits nor the others: what does not fit into its queue is dropped.
type watchers struct {
	queue int // room for each

	count   atomic.Int32 // of all, so that nobody makes an Event for none
	dropped atomic.Uint64

	mu     sync.RWMutex
	closed bool
	all    map[*watcher]struct{}
	done   sync.WaitGroup
}

type watcher struct {
	events chan *eventsv1.Event
	handle func(runtime.Object)
}

// add starts to call handle with each occurrence. stop ends that: what waits is
// still handed over. It may be called more than once, and by the handler itself.
func (ws *watchers) add(logger klog.Logger, handle func(runtime.Object)) (stop func(), err error) {
	if handle == nil {
		return nil, errors.New("events: event handler is nil")
	}
	w := &watcher{events: make(chan *eventsv1.Event, ws.queue), handle: handle}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return nil, errShutDown
	}
	if ws.all == nil {
		ws.all = make(map[*watcher]struct{})
	}
	ws.all[w] = struct{}{}
	ws.count.Add(1)
	ws.done.Go(func() {
		for event := range w.events {
			w.call(logger, event)
		}
	})
	return func() {
		ws.mu.Lock()
		defer ws.mu.Unlock()
		ws.stop(w)
	}, nil
}

// stop ends one watcher. The lock is held.
func (ws *watchers) stop(w *watcher) {
	if _, ok := ws.all[w]; ok {
		delete(ws.all, w)
		ws.count.Add(-1)
		close(w.events)
	}
}

// any reports whether there is a watcher.
func (ws *watchers) any() bool { return ws.count.Load() > 0 }

// send offers event to all watchers. Each gets a copy of its own.
func (ws *watchers) send(event *eventsv1.Event) {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	for w := range ws.all {
		select {
		case w.events <- event.DeepCopy():
		default:
			ws.dropped.Add(1)
		}
	}
}

// shutdown ends all watchers and waits, until ctx ends, for what they had
// waiting to be handled.
func (ws *watchers) shutdown(ctx context.Context) error {
	ws.mu.Lock()
	ws.closed = true
	for w := range ws.all {
		ws.stop(w)
	}
	ws.mu.Unlock()
	return waitFor(ctx, &ws.done)
}

func (w *watcher) call(logger klog.Logger, event *eventsv1.Event) {
	defer recoverAndLog(logger, "event handler")
	w.handle(event)
}

// waitFor waits for a group until ctx ends. The goroutine that it starts lives
// as long as the group.
func waitFor(ctx context.Context, group *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
