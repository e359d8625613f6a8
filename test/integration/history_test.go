package integration

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// history is what a server has told of the Events of a namespace, in order.
type history struct {
	mu      sync.Mutex
	changes []change
}

// change is one of a watch: an Event was added, modified or deleted.
type change struct {
	kind  watch.EventType
	event *eventsv1.Event
}

// watchEvents notes all that becomes of the Events of a namespace from now on.
func watchEvents(t *testing.T, clients kubernetes.Interface, namespace string) *history {
	t.Helper()
	watcher, err := clients.EventsV1().Events(namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	h := &history{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for change := range watcher.ResultChan() {
			h.add(change)
		}
	}()
	t.Cleanup(func() {
		watcher.Stop()
		<-done
	})
	return h
}

func (h *history) add(c watch.Event) {
	event, ok := c.Object.(*eventsv1.Event)
	if !ok {
		return // an error of the watch, after which nothing comes: tests wait for what they need
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes = append(h.changes, change{kind: c.Type, event: event})
}

// all returns the changes so far.
func (h *history) all() []change {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes[:len(h.changes):len(h.changes)]
}
