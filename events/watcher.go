package events

import (
	"context"
	"sync"
	"sync/atomic"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// watcherQueue is how many events can wait for one watcher.
const watcherQueue = 1000

// watchers hands every occurrence to functions in this process. Each has a
// bounded queue and a goroutine of its own, so that a slow one holds up neither
// who emits nor the others: what does not fit into its queue is dropped.
type watchers struct {
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
//
// handle must not panic.
func (ws *watchers) add(handle func(runtime.Object)) (stop func(), err error) {
	w := &watcher{events: make(chan *eventsv1.Event, watcherQueue), handle: handle}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return nil, ErrShutDown
	}
	if ws.all == nil {
		ws.all = make(map[*watcher]struct{})
	}
	ws.all[w] = struct{}{}
	ws.count.Add(1)
	ws.done.Go(func() {
		for event := range w.events {
			w.handle(event)
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

// close ends all watchers for good. What they had waiting is still handled; the
// channel is closed when it has been.
func (ws *watchers) close() <-chan struct{} {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = true
	for w := range ws.all {
		ws.stop(w)
	}
	return ended(&ws.done)
}

// ended returns a channel that is closed when a group has ended. The goroutine
// that it starts lives as long as the group.
func ended(group *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}

// waitFor waits until done is closed or ctx ends. What has been done when ctx
// ends is done.
func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
