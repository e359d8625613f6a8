package events

import (
	"context"
	"errors"
	"fmt"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/eventseries/eventseries/internal/eventclient"
)

// EventSinkImpl writes Events through the events.k8s.io/v1 API. It has the same name in client-go.
// Set Interface; with the zero value every call returns an error. It is safe for concurrent use.
//
// If Interface has a REST client, Create, Patch, and List send each request once, without the retries
// and the rate limiter of the client: the [Broadcaster] has its own. Events are protobuf, and patches JSON. A
// response that is not an Event is an error. A fake clientset has no REST client, so they call its methods.
//
// A key has one Event, and events.k8s.io/v1 permits to change its `series` only. Many programs
// date Events by eventTime, lastTimestamp or count: they show the first occurrence only, or nothing
// if they start later. client-go can begin more Events if a loop is slower than 6 minutes, so
// there they show the occurrences of such a loop. To keep that, use NewSink of package compat, with
// heartbeats of 5 minutes.
type EventSinkImpl struct {
	// Interface is the client to use, such as clientset.EventsV1().
	Interface typedeventsv1.EventsV1Interface

	once   sync.Once
	events *eventclient.Client[*eventsv1.Event, *eventsv1.EventList] // nil if Interface has no REST client
}

var errNoInterface = errors.New("events: EventSinkImpl has no Interface")

// Create creates event in its namespace and returns the Event that the server stored.
func (s *EventSinkImpl) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("create", event); err != nil {
		return nil, err
	}
	if client := s.client(); client != nil {
		return client.Create(ctx, event.Namespace, event)
	}
	return s.Interface.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
}

// Update replaces event with a method of Interface, and returns the Event that the server stored.
// The recorder does not call it.
func (s *EventSinkImpl) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("update", event); err != nil {
		return nil, err
	}
	return s.Interface.Events(event.Namespace).Update(ctx, event, metav1.UpdateOptions{})
}

// Patch applies a JSON merge patch (RFC 7386) to the Event with the namespace and
// name of event, and returns the Event that the server stored.
func (s *EventSinkImpl) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := s.check("patch", event); err != nil {
		return nil, err
	}
	if client := s.client(); client != nil {
		return client.Patch(ctx, event.Namespace, event.Name, data)
	}
	return s.Interface.Events(event.Namespace).Patch(ctx, event.Name, types.MergePatchType, data, metav1.PatchOptions{})
}

// List returns the Events that opts selects in a namespace, or in all namespaces if
// namespace is empty.
func (s *EventSinkImpl) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	if s == nil || s.Interface == nil {
		return nil, errNoInterface
	}
	if client := s.client(); client != nil {
		return client.List(ctx, namespace, opts)
	}
	return s.Interface.Events(namespace).List(ctx, opts)
}

func (s *EventSinkImpl) check(verb string, event *eventsv1.Event) error {
	switch {
	case s == nil || s.Interface == nil:
		return errNoInterface
	case event == nil:
		return fmt.Errorf("events: cannot %s a nil event", verb)
	case event.Namespace == "":
		return fmt.Errorf("events: cannot %s event %q without a namespace", verb, event.Name)
	}
	return nil
}

// client returns the client that sends requests, or nil if there is no REST client.
func (s *EventSinkImpl) client() *eventclient.Client[*eventsv1.Event, *eventsv1.EventList] {
	s.once.Do(func() {
		s.events = eventclient.New[*eventsv1.Event, *eventsv1.EventList](s.Interface.RESTClient(), eventsv1.SchemeGroupVersion)
	})
	return s.events
}
