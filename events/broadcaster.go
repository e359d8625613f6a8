package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/internal/reference"
	"github.com/eventseries/eventseries/internal/safelog"
	"github.com/eventseries/eventseries/internal/sanitize"
	"github.com/eventseries/eventseries/internal/tracker"
)

// Errors of [Broadcaster.StartRecordingToSinkWithContext].
var (
	ErrStarted  = errors.New("events: broadcaster was started already")
	ErrShutDown = errors.New("events: broadcaster is shut down")
)

// Broadcaster records the events of its recorders: it tracks the series that they form, and writes
// those to a sink. Make one with [NewBroadcaster] or [NewBroadcasterWithOptions]. All methods can
// be called concurrently, and at any time: events that are emitted before the start wait, and
// events that are emitted after [Broadcaster.Shutdown] are counted as dropped.
type Broadcaster struct {
	sink    EventSink
	opts    Options
	invalid error // what is wrong with the options
	clock   clock.WithTicker

	tracker  *tracker.Tracker
	lists    *lists
	watchers watchers
	counters counters
	nameless sync.Once // the line about an object without a name
	report   reporter
	limiter  *rate.Limiter
	telling  sync.Map // the goroutines that call OnDrop, see tell

	log        atomic.Pointer[klog.Logger]
	dispatcher atomic.Pointer[dispatcher] // nil until the start

	mu           sync.Mutex // guards what follows
	shuttingDown bool
	shutDown     chan struct{} // closed when Shutdown has ended
}

// NewBroadcaster returns a broadcaster with default options. See [NewBroadcasterWithOptions].
func NewBroadcaster(sink EventSink) *Broadcaster {
	return NewBroadcasterWithOptions(sink, Options{})
}

// NewBroadcasterWithOptions returns a broadcaster that writes to sink once it is
// started. It starts no goroutine before. If the options are invalid, the start
// returns an error that names each invalid one, with its value.
func NewBroadcasterWithOptions(sink EventSink, opts Options) *Broadcaster {
	b := &Broadcaster{sink: sink, opts: opts.withDefaults(), shutDown: make(chan struct{})}
	if b.invalid = opts.validate(); b.invalid != nil {
		// It will never write, but it must accept events.
		b.opts = Options{OnDrop: opts.OnDrop, Clock: opts.Clock, Filter: opts.Filter}.withDefaults()
	}
	if sink, ok := sink.(interface{ MaxInFlight() int }); ok {
		b.opts.workers = sink.MaxInFlight() // that of package eventstest: a history is always the same
	}
	b.clock = b.opts.Clock
	b.limiter = newLimiter(b.opts)
	b.lists = newLists(b, sink)
	b.tracker = tracker.New(b.opts.tracker(), b.clock.Now())
	b.report = newReporter(b)
	b.watchers.all = make(map[chan *eventsv1.Event]struct{})
	b.counters.writes, b.counters.durations = make(map[WriteKey]uint64), make(map[string]Histogram)
	return b
}

// NewRecorder returns a recorder that emits events in the name of a controller. scheme knows the
// kinds of objects without a TypeMeta. It can be nil if all have one, or have types of client-go's
// scheme, which is the second choice. If the API server would reject the name, NewRecorder repairs
// it and logs that. The recorder is also an [AnnotatedEventRecorder]. It can be used concurrently.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, reportingController string) EventRecorderLogger {
	return b.NewRecorderWithOptions(scheme, reportingController, RecorderOptions{})
}

// RecorderOptions of a recorder. The zero value is the default.
type RecorderOptions struct {
	// DistinctNotes is how many series can differ in their notes alone, for controllers whose
	// notes distinguish their events, like those of the legacy recorder. If zero, none.
	//
	// Further notes share one series, whose note begins with "(combined from similar events): ".
	// The recorder then formats each note.
	DistinctNotes int
	// ReportingInstance is [Options].ReportingInstance for the events of this
	// recorder. If empty, it is that of the broadcaster.
	ReportingInstance string
	// CombinedNote, if set, returns the note of an Event that different notes share, for an
	// occurrence that it receives as an Event, concurrently. Fast loops do not pass each.
	CombinedNote func(occurrence *eventsv1.Event) string
}

// NewRecorderWithOptions is [Broadcaster.NewRecorder] for a recorder with options of its own, or
// to use annotations without a type assertion: NewRecorder returns a type of client-go.
func (b *Broadcaster) NewRecorderWithOptions(scheme *runtime.Scheme, reportingController string, opts RecorderOptions) AnnotatedEventRecorder {
	id, repairs := sanitize.NewIdentity(reportingController, cmp.Or(opts.ReportingInstance, b.opts.ReportingInstance))
	for _, repair := range repairs {
		// Programs can make a recorder for each reconciliation.
		if suppressed, ok := b.report.repairs.allow(repair.Field+" "+repair.Given, b.clock.Now()); ok {
			b.logger().Info("Repaired a name that the API server would reject", "field", repair.Field, "name", repair.Given, "becomes", repair.Used, "suppressed", suppressed)
		}
	}
	b.lists.knows(id)
	return &recorder{source: &source{
		broadcaster:   b,
		references:    reference.Resolver{Scheme: scheme},
		identity:      id,
		distinctNotes: max(opts.DistinctNotes, 0),
		combinedNote:  opts.CombinedNote,
	}}
}

// StartRecordingToSink starts to write events to the sink until stopCh is closed. It
// logs the error that [Broadcaster.StartRecordingToSinkWithContext] would return.
//
// Deprecated: use StartRecordingToSinkWithContext, as with client-go.
func (b *Broadcaster) StartRecordingToSink(stopCh <-chan struct{}) {
	ctx := klog.NewContext(wait.ContextForChannel(stopCh), b.logger())
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
		b.logger().Error(err, "Cannot record events")
	}
}

// StartRecordingToSinkWithContext starts to write events to the sink, including those
// that were emitted before. It logs to the logger of ctx.
//
// When ctx ends, the broadcaster writes what the server does not know yet, and still accepts
// events. It writes for [Options].ShutdownTimeout and then stops; a later
// [Broadcaster.Shutdown] writes the rest. So call Shutdown when the last emitter has ended,
// and not when it is asked to end.
//
// It returns an error if the options are invalid or there is no sink, [ErrStarted] if
// the broadcaster was started before, and [ErrShutDown] if it was shut down.
func (b *Broadcaster) StartRecordingToSinkWithContext(ctx context.Context) error {
	if b.invalid != nil {
		return fmt.Errorf("events: cannot start: %w", b.invalid)
	}
	if b.sink == nil {
		return errors.New("events: cannot start: no sink")
	}
	logger := safelog.Guard(klog.FromContext(ctx))
	if err := b.start(ctx, logger); err != nil {
		return err
	}
	logger.V(2).Info("Recording events", "scope", b.opts.Scope, "sink", fmt.Sprintf("%T", b.sink))
	return nil
}

func (b *Broadcaster) start(ctx context.Context, logger klog.Logger) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.shuttingDown:
		return ErrShutDown
	case b.dispatcher.Load() != nil:
		return ErrStarted
	}
	b.log.Store(&logger)
	d := b.startDispatcher()
	d.goroutines.Go(func() { b.outlive(ctx, d) })
	if b.lists.from != nil {
		d.goroutines.Go(func() { b.lists.run(d) })
	}
	return nil
}

// Start is [Broadcaster.StartRecordingToSinkWithContext] for programs under a manager
// of controller-runtime: `mgr.Add(broadcaster)` starts it with the manager, or in the
// scope [SameController] when the leader is elected. It returns when ctx ends. Call
// [Broadcaster.Shutdown] after the manager has returned.
//
// It is no error if the broadcaster was started before, for example by the events of
// leader election through package compat. Then Start only waits for the end of ctx.
func (b *Broadcaster) Start(ctx context.Context) error {
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil && !errors.Is(err, ErrStarted) {
		return err
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection reports whether only the leader starts the broadcaster: in the
// scope [SameController].
func (b *Broadcaster) NeedLeaderElection() bool { return b.opts.Scope == SameController }

// outlive writes what the server does not know when ctx ends, because many processes end
// soon afterwards, without Shutdown. It stops d some time later.
func (b *Broadcaster) outlive(ctx context.Context, d *dispatcher) {
	select {
	case <-ctx.Done():
	case <-d.ctx.Done():
		return
	}
	d.goroutines.Go(func() { _ = b.Flush(d.ctx) }) // Shutdown reports what is left
	if d.sleep(d.ctx, b.opts.ShutdownTimeout) != nil {
		return
	}
	b.mu.Lock()
	stops := !b.shuttingDown // otherwise Shutdown has time of its own
	if stops {
		d.cancel()
	}
	b.mu.Unlock()
	if stops {
		b.report.lost(b.logger(), nil, nil, true)
	}
}

// Shutdown ends the intake, writes what the server does not know yet, including the current counts
// of ongoing series, and stops. It returns after [Options].ShutdownTimeout at the latest, and logs
// and counts what is left. A second call waits for the first one, at most for as long.
func (b *Broadcaster) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), b.opts.ShutdownTimeout)
	defer cancel()
	b.mu.Lock()
	if b.shuttingDown {
		b.mu.Unlock()
		// With a timeout, because the first call can wait for a handler that makes the second.
		_ = waitFor(ctx, b.shutDown)
		return
	}
	b.shuttingDown = true
	d := b.dispatcher.Load()
	b.mu.Unlock()
	defer close(b.shutDown)

	logger := b.logger()
	b.tracker.Seal(tracker.DropShutdown)
	handled := b.watchers.close()
	if d != nil {
		b.finish(ctx, logger, d)
	}
	b.drop(logger, nil, b.tracker.Clear(tracker.DropShutdown, b.clock.Now()))
	b.report.lost(logger, nil, nil, true)
	if err := waitFor(ctx, handled); err != nil {
		logger.Error(err, "An event handler hangs")
	}
	stats := b.Stats()
	logger.V(2).Info("Stopped recording events", "occurrences", stats.Occurrences, "writes", fmt.Sprint(stats.Writes), "dropped", stats.Dropped)
}

// finish writes what the server does not know yet, and stops d.
func (b *Broadcaster) finish(ctx context.Context, logger klog.Logger, d *dispatcher) {
	grace := min(b.opts.ShutdownTimeout/10, hopeless) // for the end of requests that are cut off
	writing, stop := context.WithTimeout(ctx, b.opts.ShutdownTimeout-grace)
	defer stop()
	flushing, cancel := context.WithCancelCause(writing)
	defer cancel(nil)
	if d.ctx.Err() != nil {
		// It was stopped after its context had ended. Its last requests must return before
		// others are made for the same series.
		if err := waitFor(flushing, ended(&d.goroutines)); err != nil {
			logger.Error(err, "A sink hangs")
			return
		}
		d = b.startDispatcher()
	}
	d.beginShutdown()
	if b.detached() == nil {
		d.goroutines.Go(func() {
			if d.untilHopeless(flushing) == nil {
				cancel(errHopeless)
			}
		})
		if err := b.Flush(flushing); err != nil {
			logger.Error(err, "Events were left when the broadcaster was shut down")
		}
	}
	cancel(nil)
	d.cancel()
	if err := waitFor(ctx, ended(&d.goroutines)); err != nil {
		logger.Error(err, "A sink hangs")
	}
}

// detached returns a channel that is closed when the sink can be used again, or nil if it
// can be used.
func (b *Broadcaster) detached() <-chan struct{} {
	if sink, ok := b.sink.(detachable); ok {
		return sink.Detached()
	}
	return nil
}

// logger returns the logger of the context with which the broadcaster was started.
func (b *Broadcaster) logger() klog.Logger {
	if logger := b.log.Load(); logger != nil {
		return *logger
	}
	return safelog.Guard(klog.Background())
}

// Flush returns when everything that was emitted before the call is on the server,
// including the counts of ongoing series, or is lost and counted in [Stats].Dropped. It
// does not wait for series that the server refuses. If ctx ends first, or the
// broadcaster is not running, it returns an error with the number of series left.
func (b *Broadcaster) Flush(ctx context.Context) error {
	f := b.tracker.Flush(b.clock.Now())
	defer f.Stop()
	pending := f.Left()
	if pending == 0 {
		return nil
	}
	d := b.dispatcher.Load()
	if d == nil {
		return fmt.Errorf("events: cannot flush %d series: the broadcaster has not been started", pending)
	}
	d.poke()
	var cause error
	select {
	case <-f.Done:
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-d.ctx.Done():
		cause = errors.New("the broadcaster has stopped")
	}
	return fmt.Errorf("events: %d of %d series were not flushed: %w", f.Left(), pending, cause)
}
