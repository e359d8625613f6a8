package record

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"sync"
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
	"github.com/eventseries/eventseries/internal/wiring"
)

// Broadcaster is the [EventBroadcaster] that [NewBroadcaster] returns. Its methods are
// safe for concurrent use, at any time. It has those of [compat.Broadcaster], of which
// [compat.Broadcaster.Events] returns the broadcaster that records the events:
//
//	stats := broadcaster.(*record.Broadcaster).Events().Stats()
type Broadcaster struct {
	*compat.Broadcaster

	recorders    legacybroadcaster.Recorders
	sink         *relay
	flushTimeout time.Duration
	logger       klog.Logger

	mu         sync.Mutex
	recordings int // results of StartRecordingToSink that are not stopped
	generation int // of recordings without a pause
}

// NewBroadcaster returns a [Broadcaster] that records nothing until
// [Broadcaster.StartRecordingToSink].
func NewBroadcaster(opts ...BroadcasterOption) EventBroadcaster {
	c := newConfig(opts)
	logger := safelog.Guard(klog.FromContext(c.ctx))
	sink := &relay{sources: sources{known: lru.New(maxSources)}}
	wired := &wiring.Sink{EventSink: sink, Detached: sink.whileDetached}
	to, err := events.New(wired, compat.WithDefaults(c.events))
	if err != nil {
		logger.Error(err, "Recording events with default options")
		c.events = events.Options{}
		to = compat.NewBroadcaster(wired).Events()
	}
	b := &Broadcaster{
		Broadcaster:  compat.NewBroadcasterFor(to, compat.Options{Context: c.ctx}),
		recorders:    legacybroadcaster.Recorders{Target: to, DistinctNotes: c.distinctNotes, Message: c.correlator.MessageFunc},
		sink:         sink,
		flushTimeout: cmp.Or(c.events.ShutdownTimeout, defaultShutdownTimeout),
		logger:       logger,
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
// all results. In the latter case it writes pending events for at most
// events.Options.ShutdownTimeout. Events that are emitted later wait. The next call of
// StartRecordingToSink, with any sink, writes them; Shutdown drops them and counts them in
// events.Stats.Dropped.
func (b *Broadcaster) StartRecordingToSink(sink EventSink) watch.Interface {
	to, err := newDestination(sink)
	if err == nil {
		err = b.use(to)
	}
	if err != nil {
		b.logger.Error(err, "Cannot record events")
		return legacybroadcaster.NewWatch(func() {})
	}
	b.Broadcaster.StartRecordingToSink(nil) // has an effect once
	return legacybroadcaster.NewWatch(b.release)
}

// use makes to the destination of events.
func (b *Broadcaster) use(to *destination) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recordings > 0 && !to.is(b.sink.destination()) {
		return errors.New("record: events are already recorded to another sink, which remains the only one")
	}
	if b.recordings++; b.recordings == 1 {
		b.generation++
		b.sink.attach(to)
	}
	return nil
}

// release ends a recording. The last one ends when its pending events are written.
func (b *Broadcaster) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.recordings--; b.recordings == 0 {
		go b.end(b.generation)
	}
}

// end writes pending events and then stops the writing, unless the recording has started
// again. The shutdown of the broadcaster ends it, too.
func (b *Broadcaster) end(generation int) {
	ctx, cancel := context.WithTimeout(context.Background(), b.flushTimeout)
	defer cancel()
	err := b.Events().Flush(ctx)
	if b.detach(generation) && err != nil {
		b.logger.Error(err, "Events were left when the recording was stopped")
	}
}

// detach removes the destination of a generation. It reports whether it was there.
func (b *Broadcaster) detach(generation int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.generation != generation || b.recordings > 0 {
		return false
	}
	b.sink.detach()
	return true
}
