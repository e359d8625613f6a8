package compat

import (
	"context"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/apigroup"
)

// Sink writes Events through core/v1 if the server permits create and patch there, because
// most programs read the fields that only core/v1 permits to set, and through events.k8s.io/v1
// otherwise. So a program with a role for either group loses no events.
// Use it unless you need exactly one group; see [events.EventSinkImpl] and [CoreSink].
// It implements [events.EventSink] and [events.EventLister]. Create one with [NewSink],
// or from two typed clients:
//
//	sink := &compat.Sink{EventsV1: eventsClient, CoreV1: coreClient}
//
// Both groups show the same Event, so a series can be created through one group and
// patched through the other. Sink chooses the group for each verb and namespace, as
// roles do:
//
//   - It begins with core/v1. If the server denies the request (403), or does not serve the
//     group (404 without an object), Sink makes the same request through events.k8s.io/v1.
//     It makes no other requests, such as discovery.
//   - Create and patch go to the same group. If the server denies one of them in core/v1, Sink
//     uses events.k8s.io/v1 for both, until the server denies that, and for an hour at most.
//     Then it tries core/v1 again. It remembers up to 10,000 namespaces.
//   - If both groups deny a request, Sink returns the error of core/v1, or that of
//     events.k8s.io/v1 if the server serves only that. Then it asks one group, and both again
//     after 1 second, doubling to 5 minutes, so it uses a permission that arrives later in
//     either group.
//   - A request to a second group takes a token of events.Options.QPS, too.
//   - It returns all other errors at once, including 401 and 429.
//
// It logs once which rule the role lacks in the core group, to the logger of the context
// (klog.FromContext). The line names the first namespace. For list, which is optional, it
// does so at verbosity 2.
//
// Through core/v1, Sink writes the form of CoreSink, also of an Event that was begun through
// events.k8s.io/v1. Only core/v1 can update the deprecated fields: if the server does not permit
// patches there any more, they stay as they are.
//
// Requests and errors are those of EventSinkImpl and CoreSink. A Sink is safe for
// concurrent use. All methods of the zero value return an error.
type Sink struct {
	// EventsV1 and CoreV1 are the clients that send the requests, such as
	// clientset.EventsV1() and clientset.CoreV1(). Both are required.
	EventsV1 typedeventsv1.EventsV1Interface
	CoreV1   typedcorev1.CoreV1Interface

	once sync.Once
	sink *apigroup.Fallback
}

var (
	_ events.EventSink   = (*Sink)(nil)
	_ events.EventLister = (*Sink)(nil)
)

// NewSink returns a Sink that uses the clients of a clientset. If clientset is nil, all
// methods of the Sink return an error.
func NewSink(clientset kubernetes.Interface) *Sink {
	if clientset == nil {
		return &Sink{}
	}
	return &Sink{EventsV1: clientset.EventsV1(), CoreV1: clientset.CoreV1()}
}

// Create creates event and returns the server's version of it. The event requires a
// namespace.
func (s *Sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.fallback().Create(ctx, event)
}

// Update replaces event and returns the server's version of it. The recorder does not
// call Update.
func (s *Sink) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return s.fallback().Update(ctx, event)
}

// Patch applies a JSON merge patch (RFC 7386) to the Event with the namespace and name of
// event, and returns the server's version of it. The patch should contain only metadata
// and series, as with [CoreSink.Patch].
func (s *Sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return s.fallback().Patch(ctx, event, data)
}

// List returns the Events in a namespace that match opts. An empty namespace selects all
// namespaces. The field selector is one for events.k8s.io/v1; see [CoreSink.List].
func (s *Sink) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	return s.fallback().List(ctx, namespace, opts)
}

// fallback returns the sink that sends the requests, or nil if a client is missing.
func (s *Sink) fallback() *apigroup.Fallback {
	if s == nil {
		return nil
	}
	s.once.Do(func() {
		if s.EventsV1 != nil && s.CoreV1 != nil {
			s.sink = &apigroup.Fallback{
				Events: &events.EventSinkImpl{Interface: s.EventsV1},
				Core:   &apigroup.CoreSink{Interface: s.CoreV1},
			}
		}
	})
	return s.sink
}
