package listdecoder

import (
	"context"

	eventsv1 "k8s.io/api/events/v1"
)

// Receiver receives the Events of a list. Each is valid until it returns.
type Receiver func(event *eventsv1.Event)

type contextKey struct{}

// addressed is a Receiver for the lists of one sink.
type addressed struct {
	sink    any
	receive Receiver
}

// NewContext returns a context in which List of the sink may pass Events to receive instead
// of returning them. Other sinks ignore it, such as the one that this sink wraps.
func NewContext(ctx context.Context, sink any, receive Receiver) context.Context {
	return context.WithValue(ctx, contextKey{}, addressed{sink, receive})
}

// FromContext returns the Receiver for the lists of a sink, which must be a pointer. It
// returns nil if there is none.
func FromContext(ctx context.Context, sink any) Receiver {
	if a, ok := ctx.Value(contextKey{}).(addressed); ok && a.sink == sink {
		return a.receive
	}
	return nil
}

// Forward returns a context in which the Receiver for the lists of one sink is for those of
// another one, to which the first one forwards its calls unchanged.
func Forward(ctx context.Context, from, to any) context.Context {
	if receive := FromContext(ctx, from); receive != nil {
		return NewContext(ctx, to, receive)
	}
	return ctx
}
