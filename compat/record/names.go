package record

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
)

// The interfaces and types of client-go, under the same names.
type (
	// EventRecorder records events.
	EventRecorder = record.EventRecorder
	// EventRecorderLogger is an EventRecorder with a logger.
	EventRecorderLogger = record.EventRecorderLogger
	// EventBroadcaster is the interface of [Broadcaster].
	EventBroadcaster = record.EventBroadcaster
	// EventSink writes Events.
	EventSink = record.EventSink
	// EventRecorderAdapter implements the recorder of events.k8s.io/v1 with a legacy one.
	EventRecorderAdapter = record.EventRecorderAdapter
	// FakeRecorder sends events to a channel of strings, for tests.
	FakeRecorder = record.FakeRecorder

	// CorrelatorOptions configures the correlator of client-go. [WithCorrelatorOptions] says
	// which of its fields have an effect.
	CorrelatorOptions = record.CorrelatorOptions
	// EventCorrelator is the correlator of client-go. [Broadcaster] does not use it.
	EventCorrelator = record.EventCorrelator
	// EventCorrelateResult is the result of an EventCorrelator.
	EventCorrelateResult = record.EventCorrelateResult
	// EventAggregator is a part of an EventCorrelator.
	EventAggregator = record.EventAggregator
	// EventAggregatorKeyFunc returns the keys by which an EventAggregator groups Events.
	EventAggregatorKeyFunc = record.EventAggregatorKeyFunc
	// EventAggregatorMessageFunc returns the message of an aggregated Event.
	EventAggregatorMessageFunc = record.EventAggregatorMessageFunc
	// EventSourceObjectSpamFilter is a part of an EventCorrelator.
	EventSourceObjectSpamFilter = record.EventSourceObjectSpamFilter
	// EventSpamKeyFunc returns the key by which a spam filter groups Events.
	EventSpamKeyFunc = record.EventSpamKeyFunc
	// EventFilterFunc reports whether to skip an Event.
	EventFilterFunc = record.EventFilterFunc
)

// NewFakeRecorder returns a FakeRecorder whose channel has a buffer of the given size.
func NewFakeRecorder(bufferSize int) *FakeRecorder { return record.NewFakeRecorder(bufferSize) }

// NewEventRecorderAdapter returns a recorder of events.k8s.io/v1 that emits its events to
// a legacy recorder, without the related object and the action.
func NewEventRecorderAdapter(recorder EventRecorderLogger) *EventRecorderAdapter {
	return record.NewEventRecorderAdapter(recorder)
}

// NewEventCorrelator is client-go's function.
func NewEventCorrelator(clock clock.PassiveClock) *EventCorrelator {
	return record.NewEventCorrelator(clock)
}

// NewEventCorrelatorWithOptions is client-go's function.
func NewEventCorrelatorWithOptions(options CorrelatorOptions) *EventCorrelator {
	return record.NewEventCorrelatorWithOptions(options)
}

// NewEventAggregator is client-go's function.
func NewEventAggregator(lruCacheSize int, keyFunc EventAggregatorKeyFunc, messageFunc EventAggregatorMessageFunc,
	maxEvents int, maxIntervalInSeconds int, clock clock.PassiveClock) *EventAggregator {
	return record.NewEventAggregator(lruCacheSize, keyFunc, messageFunc, maxEvents, maxIntervalInSeconds, clock)
}

// NewEventSourceObjectSpamFilter is client-go's function.
func NewEventSourceObjectSpamFilter(lruCacheSize, burst int, qps float32, clock clock.PassiveClock, spamKeyFunc EventSpamKeyFunc) *EventSourceObjectSpamFilter {
	return record.NewEventSourceObjectSpamFilter(lruCacheSize, burst, qps, clock, spamKeyFunc)
}

// EventAggregatorByReasonFunc is client-go's function.
func EventAggregatorByReasonFunc(event *v1.Event) (string, string) {
	return record.EventAggregatorByReasonFunc(event)
}

// EventAggregatorByReasonMessageFunc is client-go's function.
func EventAggregatorByReasonMessageFunc(event *v1.Event) string {
	return record.EventAggregatorByReasonMessageFunc(event)
}
