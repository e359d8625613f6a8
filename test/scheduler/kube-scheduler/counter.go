package main

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// counter counts emitted events by the name of the regarding object.
type counter struct {
	mu     sync.Mutex
	byName map[string]int
}

func newCounter() *counter { return &counter{byName: make(map[string]int)} }

func (c *counter) add(regarding runtime.Object) {
	var name string
	if object, err := meta.Accessor(regarding); err == nil {
		name = object.GetName()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byName[name]++
}

// counts returns the number of events by the name of the regarding object.
func (c *counter) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.byName)
}

// counting is an adapter whose recorders count the events that they pass on.
type counting struct {
	events.EventBroadcasterAdapter
	emitted *counter
}

// NewRecorder returns a recorder that counts events.
func (c counting) NewRecorder(name string) events.EventRecorderLogger {
	return countingRecorder{c.EventBroadcasterAdapter.NewRecorder(name), c.emitted}
}

type countingRecorder struct {
	events.EventRecorderLogger
	emitted *counter
}

// Eventf counts an event, and passes it on.
func (r countingRecorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.emitted.add(regarding)
	r.EventRecorderLogger.Eventf(regarding, related, eventtype, reason, action, note, args...)
}

// WithLogger returns a recorder with a logger, which counts events, too.
func (r countingRecorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	return countingRecorder{r.EventRecorderLogger.WithLogger(logger), r.emitted}
}
