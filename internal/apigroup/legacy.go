package apigroup

import (
	"context"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/tools/record"
)

// LegacySink writes Events through a sink of the legacy recorder, with the same fields
// as [CoreSink]. The methods of a legacy sink have no context, so a call that hangs ignores
// the one that LegacySink receives.
type LegacySink struct {
	// Sink writes the Events. It is required.
	Sink record.EventSink
}

// Create creates event with the deprecated fields, and returns what the sink returns.
func (s LegacySink) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return fromResponse(s.Sink.Create(toStored(event)))
}

// Update replaces event, including the deprecated fields, and returns what the sink
// returns. The recorder does not call Update.
func (s LegacySink) Update(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return fromResponse(s.Sink.Update(toStored(event)))
}

// Patch patches event like [CoreSink.Patch]. The sink receives the patch and the Event that
// the patch results in. The patch is a JSON merge patch, and a strategic merge patch with
// the same effect.
func (s LegacySink) Patch(_ context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	data, err := addCoreFields(event, data)
	if err != nil {
		return nil, fmt.Errorf("apigroup: patch event %s/%s: %w", event.Namespace, event.Name, err)
	}
	return fromResponse(s.Sink.Patch(toStored(event), data))
}
