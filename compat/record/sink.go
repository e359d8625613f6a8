package record

import (
	"context"
	"errors"
	"reflect"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/apigroup"
)

// destination is where a broadcaster writes to.
type destination struct {
	events.EventSink

	// id is equal if two legacy sinks write to the same place.
	id any
}

// restDestination identifies a REST client.
type restDestination struct{ server, namespace string }

var errNoSink = errors.New("record: sink is nil")

// newDestination returns the destination of a legacy sink. It sends the requests of a
// client with a REST client directly, because client-go's sink has no context, and waits
// for the rate limiter of the client, which retries. It calls the methods of others.
func newDestination(sink EventSink) (*destination, error) {
	if sink == nil {
		return nil, errNoSink
	}
	impl, ok := sink.(*typedcorev1.EventSinkImpl)
	if !ok {
		return &destination{EventSink: apigroup.LegacySink{Sink: sink}, id: sink}, nil
	}
	if impl == nil || impl.Interface == nil {
		return nil, errNoSink
	}
	typed, ok := impl.Interface.(interface {
		GetClient() rest.Interface
		GetNamespace() string
	})
	if !ok {
		return &destination{EventSink: apigroup.LegacySink{Sink: sink}, id: impl.Interface}, nil
	}
	client := typed.GetClient()
	if r, ok := client.(*rest.RESTClient); client == nil || ok && r == nil {
		return nil, errNoSink
	}
	return &destination{
		EventSink: &apigroup.CoreSink{Interface: typedcorev1.New(client), Namespace: typed.GetNamespace()},
		id:        restDestination{client.Get().URL().String(), typed.GetNamespace()},
	}, nil
}

// is reports whether both destinations are the same place.
func (d *destination) is(other *destination) bool {
	a, b := reflect.ValueOf(d.id), reflect.ValueOf(other.id)
	return a.Comparable() && b.Comparable() && a.Equal(b)
}

// relay is the sink of an events.Broadcaster. It has a destination while the caller
// records to a sink.
type relay struct {
	sources sources

	mu       sync.Mutex
	to       *destination  // nil if it has none
	detached chan struct{} // closed when it has one again; nil if it was never taken away
}

var (
	_ events.EventSink   = (*relay)(nil)
	_ events.EventLister = (*relay)(nil)
)

// errDetached is the result of a request that begins while the recording stops. The
// broadcaster retries it.
var errDetached = errors.New("record: recording is stopped")

// attach sets the destination.
func (r *relay) attach(to *destination) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = to
	if r.detached != nil {
		close(r.detached)
		r.detached = nil
	}
}

// detach takes the destination away. Events wait until the relay has one again.
func (r *relay) detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to, r.detached = nil, make(chan struct{})
}

// whileDetached returns a channel that is closed when requests can be made again, for the
// events.Broadcaster. It is nil if they can be made.
func (r *relay) whileDetached() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.detached
}

// destination returns the present destination, or nil.
func (r *relay) destination() *destination {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to
}

func (r *relay) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return r.forward(event, func(to *destination) (*eventsv1.Event, error) { return to.Create(ctx, event) })
}

func (r *relay) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return r.forward(event, func(to *destination) (*eventsv1.Event, error) { return to.Update(ctx, event) })
}

func (r *relay) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	return r.forward(event, func(to *destination) (*eventsv1.Event, error) { return to.Patch(ctx, event, data) })
}

func (r *relay) forward(event *eventsv1.Event, call func(*destination) (*eventsv1.Event, error)) (*eventsv1.Event, error) {
	to := r.destination()
	if to == nil {
		return nil, errDetached
	}
	if source, ok := r.sources.of(identity{event.ReportingController, event.ReportingInstance}); ok {
		event.DeprecatedSource = source
	}
	return call(to)
}

// List returns nothing if the destination cannot list.
func (r *relay) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	to := r.destination()
	if to == nil {
		return nil, errDetached
	}
	if lister, ok := to.EventSink.(events.EventLister); ok {
		return lister.List(ctx, namespace, opts)
	}
	return &eventsv1.EventList{}, nil
}
