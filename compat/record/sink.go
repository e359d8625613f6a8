package record

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"

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

// relay is the sink of an events.Broadcaster. It has a destination once the caller records to a sink.
type relay struct {
	sources sources
	to      atomic.Pointer[destination] // set once
}

var (
	_ events.EventSink   = (*relay)(nil)
	_ events.EventLister = (*relay)(nil)
)

// use sets the destination, unless there is another one.
func (r *relay) use(to *destination) error {
	if !r.to.CompareAndSwap(nil, to) && !to.is(r.to.Load()) {
		return errors.New("record: events are already recorded to another sink, which remains the only one")
	}
	return nil
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
	to := r.to.Load()
	if to == nil {
		return nil, errNoSink
	}
	if source, ok := r.sources.of(identity{event.ReportingController, event.ReportingInstance}); ok {
		event.DeprecatedSource = source
	}
	return call(to)
}

// List returns nothing if the destination cannot list.
func (r *relay) List(ctx context.Context, namespace string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	to := r.to.Load()
	if to == nil {
		return nil, errNoSink
	}
	if lister, ok := to.EventSink.(events.EventLister); ok {
		return lister.List(ctx, namespace, opts)
	}
	return &eventsv1.EventList{}, nil
}
