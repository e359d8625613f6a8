package compat

import (
	"context"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/apigroup"
)

// CoreSink writes Events through the core/v1 API. Use it on servers without
// events.k8s.io/v1, and for consumers that read only the fields that Events had
// before events.k8s.io/v1. It implements [events.EventSink] and
// [events.EventLister].
//
// CoreSink writes Events in the form of the legacy recorder's, which most programs read. It
// writes the same fields as [events.EventSinkImpl], except for eventTime, and derives those from
// them that only core/v1 permits to set, or to change:
//
//   - firstTimestamp is the first time;
//   - lastTimestamp and count are those of the series, or the first time and 1 if the
//     Event has no series;
//   - source consists of the reporting controller and the reporting instance, as in
//     the Events of the legacy recorder, unless event sets another. The host is empty
//     if the instance begins with "<controller>-", as the default does;
//   - message is the latest note, of up to 4 KiB;
//   - eventTime is empty: programs take it for the latest time. The annotation
//     eventseries.dev/event-time contains the first time to the microsecond, and CoreSink
//     puts it back into eventTime of the Events that it returns. The server does not permit
//     that for an Event in another namespace than its object's, or about a cluster-scoped
//     object outside of default, so such an Event keeps eventTime, and a message of up to
//     1,024 bytes.
//
// It updates them with every patch of a series, which only core/v1 permits.
// events.k8s.io/v1 shows them as deprecatedFirstTimestamp and so on. CoreSink writes
// a legacy Event unchanged.
//
// If Interface has a REST client, requests are sent without retries, and bypass the
// client's rate limiter, as with EventSinkImpl. A fake
// clientset has no REST client, so CoreSink calls its methods. Errors are those of the client, or
// start with "apigroup:".
//
// A CoreSink is safe for concurrent use. All methods of the zero value return an
// error.
type CoreSink struct {
	// Interface is the client that sends the requests, such as clientset.CoreV1().
	// It is required.
	Interface typedcorev1.CoreV1Interface

	once sync.Once
	sink *apigroup.CoreSink
}

var (
	_ events.EventSink   = (*CoreSink)(nil)
	_ events.EventLister = (*CoreSink)(nil)
)

// Create creates event with the deprecated fields, and returns the server's version
// of it. The event requires a namespace.
func (s *CoreSink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.core().Create(ctx, event)
}

// Update replaces event, including the deprecated fields, and returns the server's
// version of it. The recorder does not call Update.
func (s *CoreSink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.core().Update(ctx, event)
}

// Patch applies a JSON merge patch (RFC 7386) to the Event with the namespace and
// name of event, and returns the server's version of it.
//
// If the patch contains series, Patch adds the deprecated fields that the patch does
// not set itself. It takes the first time from event, the others from the
// series. If event or the patch contains the latest note, Patch adds the message, and takes the
// first note from event. It sends any other patch unchanged.
//
// The patch is one for events.k8s.io/v1. Patch does not rename its fields, so a patch
// should contain only metadata and series, which both groups share.
func (s *CoreSink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.core().Patch(ctx, event, data)
}

// List returns the Events in a namespace that match opts. An empty namespace selects
// all namespaces. List translates the field selector of opts from events.k8s.io/v1.
//
// Servers without events.k8s.io/v1 cannot select by reportingController. If the
// server rejects the selector, List repeats the request without that field and
// filters the response. Pages may then be shorter than opts.Limit, or empty.
func (s *CoreSink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return s.core().List(ctx, namespace, opts)
}

// core returns the sink that sends the requests, or nil if s is nil.
func (s *CoreSink) core() *apigroup.CoreSink {
	if s == nil {
		return nil
	}
	s.once.Do(func() { s.sink = &apigroup.CoreSink{Interface: s.Interface} })
	return s.sink
}
