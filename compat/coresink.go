package compat

import (
	"context"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/coreevents"
)

// CoreSink writes Events through the core/v1 API: on servers that have no
// events.k8s.io/v1, and for consumers that read only the fields which Events had
// before they were series. It is an events.EventSink and an events.EventLister.
//
// What it writes is what events.EventSinkImpl would write, and beside that the
// old fields: firstTimestamp is eventTime, lastTimestamp and count are those of
// the series (eventTime and 1, where there is none), and the component of source
// is the reporting controller. They are kept up with each later write, which
// core/v1 alone permits. Through events.k8s.io the same Event shows them as its
// deprecated fields. An Event that has no eventTime was born old, and is written
// as it is.
//
// Requests are made as EventSinkImpl makes them: where Interface has a REST
// client they are not retried, do not wait for the client's rate limiter, and are
// JSON; a fake clientset's methods are called. Errors are those of the client, or
// begin with "coreevents:".
//
// It may be used concurrently. The zero value is of no use: every call returns
// an error.
type CoreSink struct {
	// Interface is the client to use, such as clientset.CoreV1().
	Interface typedcorev1.CoreV1Interface

	once sync.Once
	sink *coreevents.Sink
}

var (
	_ events.EventSink   = (*CoreSink)(nil)
	_ events.EventLister = (*CoreSink)(nil)
)

// Create creates event in its namespace, with the old fields, and returns what
// the server made of it.
func (s *CoreSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.core().Create(ctx, event)
}

// Update replaces event, old fields included, and returns what the server made
// of it. The recorder does not use it.
func (s *CoreSink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.core().Update(ctx, event)
}

// Patch applies a JSON merge patch (RFC 7386), which is one for events.k8s.io/v1,
// to the Event that has event's namespace and name, and returns what the server
// made of it. A patch that has a series gets the old fields that go with it, but
// for those that it has itself; those that the series does not decide are taken
// from event. Other patches are sent as they are. It is for metadata and series,
// which are the same in both groups: no other field is translated.
func (s *CoreSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.core().Patch(ctx, event, data)
}

// List returns the Events of a namespace, or of all if that is empty, that opts
// selects. Its field selector is one for events.k8s.io/v1, and is translated.
//
// Servers that do not know events.k8s.io/v1 cannot select by reportingController
// either. There each page is asked for a second time without that, and what
// comes is selected here, so that pages are smaller than opts.Limit, or empty.
func (s *CoreSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return s.core().List(ctx, namespace, opts)
}

// core returns what does the work, nil for a sink that is nil.
func (s *CoreSink) core() *coreevents.Sink {
	if s == nil {
		return nil
	}
	s.once.Do(func() { s.sink = &coreevents.Sink{Interface: s.Interface} })
	return s.sink
}
