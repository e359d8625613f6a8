package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// EventSinkImpl writes Events through the events.k8s.io/v1 API. It has the name
// that it has in client-go, so that programs need change nothing but an import.
//
// Where Interface has a REST client, requests go through it directly: they are
// not retried there, as the broadcaster knows better when, and they do not wait
// for the client's rate limiter, which the controller needs for other things and
// the broadcaster has one of its own. A fake clientset has no REST client; its
// methods are called then.
//
// It may be used concurrently. The zero value is of no use: every call returns
// an error.
type EventSinkImpl struct {
	// Interface is the client to use, such as clientset.EventsV1().
	Interface typedeventsv1.EventsV1Interface

	once   sync.Once
	client restclient.Interface // nil if Interface has none
}

var (
	errNoInterface = errors.New("events: EventSinkImpl has no Interface")
	// noThrottle lets every request pass.
	noThrottle = flowcontrol.NewFakeAlwaysRateLimiter()
)

// Create creates event in its namespace and returns what the server made of it.
func (s *EventSinkImpl) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("create", event); err != nil {
		return nil, err
	}
	rest := s.rest()
	if rest == nil {
		return s.Interface.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	}
	return do(ctx, rest.Post().Namespace(event.Namespace).Resource("events").Body(event))
}

// Update replaces event and returns what the server made of it. The recorder
// does not use it.
func (s *EventSinkImpl) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("update", event); err != nil {
		return nil, err
	}
	rest := s.rest()
	if rest == nil {
		return s.Interface.Events(event.Namespace).Update(ctx, event, metav1.UpdateOptions{})
	}
	return do(ctx, rest.Put().Namespace(event.Namespace).Resource("events").Name(event.Name).Body(event))
}

// Patch applies a JSON merge patch (RFC 7386) to the Event that has event's
// namespace and name, and returns what the server made of it.
func (s *EventSinkImpl) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := s.check("patch", event); err != nil {
		return nil, err
	}
	rest := s.rest()
	if rest == nil {
		return s.Interface.Events(event.Namespace).Patch(ctx, event.Name, types.MergePatchType, data, metav1.PatchOptions{})
	}
	return do(ctx, rest.Patch(types.MergePatchType).Namespace(event.Namespace).Resource("events").Name(event.Name).Body(data))
}

// List returns the Events of a namespace, or of all if that is empty, that opts
// selects.
func (s *EventSinkImpl) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	if s == nil || s.Interface == nil {
		return nil, errNoInterface
	}
	rest := s.rest()
	if rest == nil {
		return s.Interface.Events(namespace).List(ctx, opts)
	}
	list := &eventsv1.EventList{}
	return list, rest.Get().Namespace(namespace).Resource("events").VersionedParams(&opts, scheme.ParameterCodec).
		MaxRetries(0).Throttle(noThrottle).Do(ctx).Into(list)
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

// rest returns the REST client, nil if there is none.
func (s *EventSinkImpl) rest() restclient.Interface {
	s.once.Do(func() {
		rest := s.Interface.RESTClient()
		client, ok := rest.(*restclient.RESTClient)
		if ok && client == nil {
			return // a fake clientset returns a nil pointer in a non-nil interface
		}
		s.client = rest
		if ok {
			s.client = ownClient(client)
		}
	})
	return s.client
}

// ownClient returns a client that talks to the same server with the same
// credentials and connections, but waits for no rate limiter and understands
// every Retry-After.
func ownClient(client *restclient.RESTClient) restclient.Interface {
	httpClient := http.Client{}
	if client.Client != nil {
		httpClient = *client.Client
	}
	transport := httpClient.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	httpClient.Transport = retryAfterSeconds{transport}
	own, err := restclient.NewRESTClient(client.Get().URL(), "", restclient.ClientContentConfig{
		AcceptContentTypes: runtime.ContentTypeJSON,
		ContentType:        runtime.ContentTypeJSON,
		GroupVersion:       eventsv1.SchemeGroupVersion,
		Negotiator:         runtime.NewClientNegotiator(scheme.Codecs.WithoutConversion(), eventsv1.SchemeGroupVersion),
	}, noThrottle, &httpClient)
	if err != nil {
		return client // it works as well, if less well
	}
	return own
}

func do(ctx context.Context, request *restclient.Request) (*eventsv1.Event, error) {
	// Not Into, which takes an answer that is another object for success.
	object, err := request.MaxRetries(0).Throttle(noThrottle).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	event, ok := object.(*eventsv1.Event)
	if !ok {
		return nil, &apierrors.UnexpectedObjectError{Object: object}
	}
	return event, nil
}
