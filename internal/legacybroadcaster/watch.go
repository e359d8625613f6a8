package legacybroadcaster

import (
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// Watch is a [watch.Interface] that delivers no events. The methods of the legacy
// broadcaster return one only so that the caller can stop it. Create one with [NewWatch].
type Watch struct {
	stop   func()
	result chan watch.Event
}

var _ watch.Interface = (*Watch)(nil)

// NewWatch returns a Watch that calls stop once, when it is stopped.
func NewWatch(stop func()) *Watch {
	w := &Watch{result: make(chan watch.Event)}
	w.stop = sync.OnceFunc(func() {
		stop()
		close(w.result)
	})
	return w
}

// Stop implements [watch.Interface]. Further calls have no effect.
func (w *Watch) Stop() { w.stop() }

// ResultChan implements [watch.Interface]. Stop closes the channel.
func (w *Watch) ResultChan() <-chan watch.Event { return w.result }
