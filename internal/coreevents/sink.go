package coreevents

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

	"github.com/eventseries/eventseries/internal/direct"
)

// Sink writes Events through the core/v1 API. Beside what events.k8s.io/v1 has of
// them, it writes the old fields, in accord with the new ones, and keeps them up
// with each patch of a series: core/v1 alone permits that. It is what
// compat.CoreSink says of itself.
//
// It may be used concurrently. The zero value is of no use: every call returns
// an error.
type Sink struct {
	// Interface is the client to use, such as clientset.CoreV1().
	Interface typedcorev1.CoreV1Interface

	once   sync.Once
	events *direct.Resource[*corev1.Event, *corev1.EventList] // nil if Interface has no REST client
}

var errNoInterface = errors.New("coreevents: sink has no Interface")

// Create creates event in its namespace, with the old fields, and returns what
// the server made of it.
func (s *Sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("create", event); err != nil {
		return nil, err
	}
	core := ToCoreWithOldFields(event)
	if events := s.direct(); events != nil {
		return answer(events.Create(ctx, core.Namespace, core))
	}
	return answer(s.Interface.Events(core.Namespace).Create(ctx, core, metav1.CreateOptions{}))
}

// Update replaces event, old fields included, and returns what the server made
// of it. The recorder does not use it.
func (s *Sink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if err := s.check("update", event); err != nil {
		return nil, err
	}
	core := ToCoreWithOldFields(event)
	if events := s.direct(); events != nil {
		return answer(events.Update(ctx, core.Namespace, core.Name, core))
	}
	return answer(s.Interface.Events(core.Namespace).Update(ctx, core, metav1.UpdateOptions{}))
}

// Patch applies a JSON merge patch (RFC 7386), which is one for events.k8s.io/v1,
// to the Event that has event's namespace and name, and returns what the server
// made of it. A patch that has a series gets the old fields that go with it, but
// for those that it has itself; those that the series does not decide are taken
// from event. Other patches are sent as they are. It is for metadata and series,
// which are the same in both groups: no other field is translated.
func (s *Sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	if err := s.check("patch", event); err != nil {
		return nil, err
	}
	data, err := patchWithOldFields(event, data)
	if err != nil {
		return nil, fmt.Errorf("coreevents: patch of event %s/%s: %w", event.Namespace, event.Name, err)
	}
	if events := s.direct(); events != nil {
		return answer(events.Patch(ctx, event.Namespace, event.Name, data))
	}
	return answer(s.Interface.Events(event.Namespace).Patch(ctx, event.Name, types.MergePatchType, data, metav1.PatchOptions{}))
}

// List returns the Events of a namespace, or of all if that is empty, that opts
// selects. Its field selector is one for events.k8s.io/v1, and is translated.
//
// Servers that do not know events.k8s.io/v1 cannot select by reportingController
// either. There each page is asked for a second time without that, and what
// comes is selected here, so that pages are smaller than opts.Limit, or empty.
func (s *Sink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	if s == nil || s.Interface == nil {
		return nil, errNoInterface
	}
	selector, err := newCoreSelector(opts.FieldSelector)
	if err != nil {
		return nil, err
	}
	opts.FieldSelector = selector.server.String()
	page, err := s.list(ctx, namespace, opts)
	if selector.reduced && apierrors.IsBadRequest(err) {
		opts.FieldSelector = selector.oldServer.String()
		page, err = s.list(ctx, namespace, opts)
	}
	if err != nil {
		return nil, err
	}
	list := &eventsv1.EventList{ListMeta: page.ListMeta, Items: make([]eventsv1.Event, 0, len(page.Items))}
	for i := range page.Items {
		if event := &page.Items[i]; selector.reporter.Matches(reporter(event)) {
			list.Items = append(list.Items, *FromCore(event))
		}
	}
	return list, nil
}

func (s *Sink) list(ctx context.Context, namespace string, opts metav1.ListOptions) (*corev1.EventList, error) {
	if events := s.direct(); events != nil {
		return events.List(ctx, namespace, opts)
	}
	return s.Interface.Events(namespace).List(ctx, opts)
}

func (s *Sink) check(verb string, event *eventsv1.Event) error {
	switch {
	case s == nil || s.Interface == nil:
		return errNoInterface
	case event == nil:
		return fmt.Errorf("coreevents: cannot %s a nil event", verb)
	case event.Namespace == "":
		return fmt.Errorf("coreevents: cannot %s event %q without a namespace", verb, event.Name)
	}
	return nil
}

// direct returns what makes the requests, nil if there is no REST client.
func (s *Sink) direct() *direct.Resource[*corev1.Event, *corev1.EventList] {
	s.once.Do(func() {
		s.events = direct.NewResource[*corev1.Event, *corev1.EventList](s.Interface.RESTClient(), corev1.SchemeGroupVersion, "events")
	})
	return s.events
}

// answer is what the server answers, as events.k8s.io/v1 shows it.
func answer(event *corev1.Event, err error) (*eventsv1.Event, error) {
	if err != nil {
		return nil, err
	}
	return FromCore(event), nil
}
