package record

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/legacybroadcaster"
	"github.com/eventseries/eventseries/internal/safelog"
)

// Broadcaster is the [EventBroadcaster] that [NewBroadcaster] returns. Its methods are
// safe for concurrent use, at any time. It has those of [compat.Broadcaster], of which
// [compat.Broadcaster.Events] returns the broadcaster that records the events:
//
//	stats := broadcaster.(*record.Broadcaster).Events().Stats()
type Broadcaster struct {
	*compat.Broadcaster

	recorders legacybroadcaster.Recorders
	sink      *relay
	logger    klog.Logger
}

// NewBroadcaster returns a [Broadcaster] that records nothing until
// [Broadcaster.StartRecordingToSink].
func NewBroadcaster(opts ...BroadcasterOption) EventBroadcaster {
	c := newConfig(opts)
	logger := safelog.Guard(klog.FromContext(c.ctx))
	sink := &relay{sources: sources{known: lru.New(maxSources)}}
	to, err := events.New(sink, compat.WithDefaults(c.events))
	if err != nil {
		logger.Error(err, "Recording events with default options")
		to = compat.NewBroadcaster(sink).Events()
	}
	b := &Broadcaster{
		Broadcaster: compat.NewBroadcasterFor(to, compat.Options{Context: c.ctx}),
		recorders:   legacybroadcaster.Recorders{Target: to, DistinctNotes: c.distinctNotes, Message: c.correlator.MessageFunc},
		sink:        sink,
		logger:      logger,
	}
	c.correlator.MaxEvents, c.correlator.MessageFunc = 0, nil
	if ignored := setFields(c.correlator); len(ignored) > 0 {
		b.logger.Info("Ignored correlator options", "options", ignored)
	}
	return b
}

// NewBroadcasterForTests is [NewBroadcaster] without options: [WithSleepDuration] has no
// effect.
func NewBroadcasterForTests(sleepDuration time.Duration) EventBroadcaster {
	return NewBroadcaster(WithSleepDuration(sleepDuration))
}

// NewBroadcasterWithCorrelatorOptions is [NewBroadcaster] with [WithCorrelatorOptions].
func NewBroadcasterWithCorrelatorOptions(options CorrelatorOptions) EventBroadcaster {
	return NewBroadcaster(WithCorrelatorOptions(options))
}

// setFields returns the names of the fields that are not zero.
func setFields(options CorrelatorOptions) (names []string) {
	value := reflect.ValueOf(options)
	for i := range value.NumField() {
		if !value.Field(i).IsZero() {
			names = append(names, value.Type().Field(i).Name)
		}
	}
	return names
}

// NewRecorder returns a recorder whose Events have the given source. The component is also
// the reporting controller, and the host the reporting instance; see
// [compat.Broadcaster.NewRecorder]. If those are the same for two sources, NewRecorder
// appends a hash to one of them for the second source, so that the sources have Events of
// their own.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, source corev1.EventSource) EventRecorderLogger {
	as, sources := source, &b.sink.sources
	for attempt := 0; ; attempt++ {
		r := b.recorders.New(scheme, as)
		id := identityOf(r)
		other, ok := sources.claim(id, source)
		if ok {
			return r
		}
		as = distinguish(source, other, id, attempt)
	}
}

// StartEventWatcher is [compat.Broadcaster.StartEventWatcher]. The Events have the source
// of their recorder.
func (b *Broadcaster) StartEventWatcher(handler func(*corev1.Event)) watch.Interface {
	if handler == nil {
		return b.Broadcaster.StartEventWatcher(nil)
	}
	return b.Broadcaster.StartEventWatcher(func(event *corev1.Event) {
		if source, ok := b.sink.sources.of(identity{event.ReportingController, event.ReportingInstance}); ok {
			event.Source = source
		}
		handler(event)
	})
}

// StartRecordingToSink starts to write events to sink, including those that were emitted
// before. It logs an error and does nothing if sink is nil.
//
// A broadcaster writes to one sink at a time. A further call with the same client has no
// effect. A further call with another sink logs an error and has no effect: with two
// sinks of one server, each event would become two Events.
//
// The broadcaster writes until [Broadcaster.Shutdown], or until the caller has stopped
// all results. In the latter case it writes events for events.Options.ShutdownTimeout, and is then
// shut down: it cannot start again.
func (b *Broadcaster) StartRecordingToSink(sink EventSink) watch.Interface {
	to, err := newDestination(sink)
	if err == nil {
		err = b.sink.use(to)
	}
	if err != nil {
		b.logger.Error(err, "Cannot record events")
		return legacybroadcaster.NewWatch(func() {})
	}
	return b.Broadcaster.StartRecordingToSink(nil)
}
