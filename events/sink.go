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

	"github.com/eventseries/eventseries/internal/direct"
)

// EventSinkImpl writes Events through the events.k8s.io/v1 API. It has the name
// that it has in client-go, so that programs need change nothing but an import.
//
// Where Interface has a REST client, requests go through it directly: they are
// not retried there, as the broadcaster knows better when, and they do not wait
// for the client's rate limiter, which the controller needs for other things and
// the broadcaster has one of its own. They are JSON, and so are their answers,
// whatever content type the client is configured for. A fake clientset has no
// REST client; its methods are called then.
//
// An answer that is no Event is an error. It may be used concurrently. The zero
// value is of no use: every call returns an error.
type EventSinkImpl struct {
	// Interface is the client to use, such as clientset.EventsV1().
	Interface typedeventsv1.EventsV1Interface

	once   sync.Once
	events *direct.Resource[*eventsv1.Event, *eventsv1.EventList] // nil if Interface has no REST client
}

var errNoInterface = errors.New("events: EventSinkImpl has no Interface")

// Create creates event in its namespace and returns what the server made of it.
func (s *EventSinkImpl) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("create", event); err != nil {
		return nil, err
	}
	if events := s.direct(); events != nil {
		return events.Create(ctx, event.Namespace, event)
	}
	return s.Interface.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
}

// Update replaces event and returns what the server made of it. The recorder
// does not use it.
func (s *EventSinkImpl) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("update", event); err != nil {
		return nil, err
	}
	if events := s.direct(); events != nil {
		return events.Update(ctx, event.Namespace, event.Name, event)
	}
	return s.Interface.Events(event.Namespace).Update(ctx, event, metav1.UpdateOptions{})
}

// Patch applies a JSON merge patch (RFC 7386) to the Event that has event's
// namespace and name, and returns what the server made of it.
func (s *EventSinkImpl) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := s.check("patch", event); err != nil {
		return nil, err
	}
	if events := s.direct(); events != nil {
		return events.Patch(ctx, event.Namespace, event.Name, data)
	}
	return s.Interface.Events(event.Namespace).Patch(ctx, event.Name, types.MergePatchType, data, metav1.PatchOptions{})
}

// List returns the Events of a namespace, or of all if that is empty, that opts
// selects.
func (s *EventSinkImpl) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	if s == nil || s.Interface == nil {
		return nil, errNoInterface
	}
	if events := s.direct(); events != nil {
		return events.List(ctx, namespace, opts)
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

// direct returns what makes the requests, nil if there is no REST client.
func (s *EventSinkImpl) direct() *direct.Resource[*eventsv1.Event, *eventsv1.EventList] {
	s.once.Do(func() {
		s.events = direct.NewResource[*eventsv1.Event, *eventsv1.EventList](s.Interface.RESTClient(), eventsv1.SchemeGroupVersion, "events")
	})
	return s.events
}
