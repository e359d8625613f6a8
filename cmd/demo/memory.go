package main

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/fakeapi"
)

// memory is a server in memory.
type memory struct {
	requests
	api fakeapi.Server
}

func newMemory() *memory {
	m := &memory{}
	m.api.Before(func(_ context.Context, request fakeapi.Request) error {
		m.count(request.Verb)
		return nil
	})
	return m
}

// sink implements [server].
func (m *memory) sink() events.EventSink { return &m.api }

// watch implements [server]. Call it before the first request.
func (m *memory) watch(context.Context) (changes <-chan watch.Event, stop func(), err error) {
	// The server waits for the session if there are more changes.
	queue := make(chan watch.Event, 100)
	m.api.OnChange = func(_ string, before, after *eventsv1.Event) {
		switch {
		case before == nil:
			queue <- watch.Event{Type: watch.Added, Object: after}
		case after == nil:
			queue <- watch.Event{Type: watch.Deleted, Object: before}
		default:
			queue <- watch.Event{Type: watch.Modified, Object: after}
		}
	}
	return queue, func() {}, nil
}

// list implements [server].
func (m *memory) list(ctx context.Context) (*eventsv1.EventList, error) {
	return m.api.List(ctx, metav1.NamespaceAll, metav1.ListOptions{})
}
