package apigroup

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/internal/eventclient"
)

// CoreSink writes Events through the core/v1 API, in the form of the legacy recorder's
// Events. The documentation of compat.CoreSink describes it.
//
// A CoreSink is safe for concurrent use. All methods of the zero value and of a nil CoreSink
// return an error.
type CoreSink struct {
	// Interface is the client that sends the requests, such as clientset.CoreV1().
	// It is required.
	Interface typedcorev1.CoreV1Interface
	// Namespace is the only namespace that the CoreSink uses. If it is empty, the CoreSink uses
	// all namespaces. A request for an Event in another namespace returns the error
	// BadRequest.
	Namespace string

	once   sync.Once
	events *eventclient.Client[*corev1.Event, *corev1.EventList] // nil if Interface has no REST client
}

var errNoInterface = errors.New("apigroup: sink has no Interface")

// Create creates event with the deprecated fields, and returns the server's version
// of it.
func (s *CoreSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("create", event); err != nil {
		return nil, err
	}
	core := toStored(event)
	if client := s.client(); client != nil {
		return fromResponse(client.Create(ctx, core.Namespace, core))
	}
	return fromResponse(s.Interface.Events(core.Namespace).Create(ctx, core, metav1.CreateOptions{}))
}

// Update replaces event, including the deprecated fields, and returns the server's
// version of it. The recorder does not call Update.
func (s *CoreSink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("update", event); err != nil {
		return nil, err
	}
	core := toStored(event)
	return fromResponse(s.Interface.Events(core.Namespace).Update(ctx, core, metav1.UpdateOptions{}))
}

// Patch applies a JSON merge patch (RFC 7386) to the Event with the namespace and
// name of event, and returns the server's version of it. If the patch contains series,
// Patch adds the deprecated fields that the patch does not set itself. It takes
// firstTimestamp and source from event, the others from the series.
func (s *CoreSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := s.check("patch", event); err != nil {
		return nil, err
	}
	data, err := addCoreFields(event, data)
	if err != nil {
		return nil, fmt.Errorf("apigroup: patch event %s/%s: %w", event.Namespace, event.Name, err)
	}
	if client := s.client(); client != nil {
		return fromResponse(client.Patch(ctx, event.Namespace, event.Name, data))
	}
	return fromResponse(s.Interface.Events(event.Namespace).Patch(ctx, event.Name, types.MergePatchType, data, metav1.PatchOptions{}))
}

// List returns the Events in a namespace that match opts. An empty namespace selects
// all namespaces. List translates the field selector of opts from events.k8s.io/v1.
//
// Servers without events.k8s.io/v1 cannot select by reportingController. If the
// server rejects the selector, List repeats the request without that field and
// filters the response. Pages may then be shorter than opts.Limit, or empty.
func (s *CoreSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	if s == nil || s.Interface == nil {
		return nil, errNoInterface
	}
	if s.Namespace != "" {
		if namespace != "" && namespace != s.Namespace {
			return nil, s.foreign("list", "events", namespace)
		}
		namespace = s.Namespace
	}
	selector, err := newCoreSelector(opts.FieldSelector)
	if err != nil {
		return nil, err
	}
	opts.FieldSelector = selector.server.String()
	page, err := s.list(ctx, namespace, opts)
	if selector.reduced && apierrors.IsBadRequest(err) {
		opts.FieldSelector = selector.oldServer.String()
		eventclient.Charge(ctx)
		page, err = s.list(ctx, namespace, opts)
	}
	if err != nil {
		return nil, err
	}
	list := &eventsv1.EventList{ListMeta: page.ListMeta, Items: make([]eventsv1.Event, 0, len(page.Items))}
	for i := range page.Items {
		if event := &page.Items[i]; selector.selects(event.ReportingController) { // a fake clientset does not select
			list.Items = append(list.Items, *fromStored(event))
		}
	}
	return list, nil
}

func (s *CoreSink) list(ctx context.Context, namespace string, opts metav1.ListOptions) (*corev1.EventList, error) {
	if client := s.client(); client != nil {
		return client.List(ctx, namespace, opts)
	}
	return s.Interface.Events(namespace).List(ctx, opts)
}

func (s *CoreSink) check(verb string, event *eventsv1.Event) error {
	switch {
	case s == nil || s.Interface == nil:
		return errNoInterface
	case event == nil:
		return fmt.Errorf("apigroup: cannot %s a nil event", verb)
	case event.Namespace == "":
		return fmt.Errorf("apigroup: cannot %s event %q without a namespace", verb, event.Name)
	case s.Namespace != "" && s.Namespace != event.Namespace:
		return s.foreign(verb, "event", event.Namespace)
	}
	return nil
}

// foreign returns the error of a request for another namespace.
func (s *CoreSink) foreign(verb, what, namespace string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("apigroup: cannot %s %s in namespace %q: the client is for namespace %q", verb, what, namespace, s.Namespace))
}

// client returns the client that sends the requests, or nil if Interface has no
// REST client.
func (s *CoreSink) client() *eventclient.Client[*corev1.Event, *corev1.EventList] {
	s.once.Do(func() {
		s.events = eventclient.New[*corev1.Event, *corev1.EventList](s.Interface.RESTClient(), corev1.SchemeGroupVersion)
	})
	return s.events
}

// fromResponse converts a response to events.k8s.io/v1.
func fromResponse(event *corev1.Event, err error) (*eventsv1.Event, error) {
	if err != nil {
		return nil, err
	}
	return fromStored(event), nil
}
