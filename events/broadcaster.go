package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	"github.com/eventseries/eventseries/internal/wiring"
)

// Errors of [Broadcaster.StartRecordingToSinkWithContext].
var (
	ErrStarted  = errors.New("events: broadcaster was started already")
	ErrShutDown = errors.New("events: broadcaster is shut down")
)

var errNoSink = errors.New("events: the broadcaster has no sink")

// Broadcaster records the events of its recorders: it tracks the series that they form, and writes
// those to a sink. Make one with [NewBroadcaster] or [New]. All methods can be called concurrently,
// and at any time: events that are emitted before the start wait, and events that are emitted after
// the end are counted as dropped. The end is [Broadcaster.Shutdown], or that of the context of the
// start, see [Broadcaster.StartRecordingToSinkWithContext].
type Broadcaster struct {
	sink  EventSink
	opts  Options
	wired wiring.Sink // of packages of this project
	clock clock.WithTicker

	tracker  *tracker.Tracker
	lists    *lists
	watchers watchers
	counters counters
	report   reporter
	limiter  *rate.Limiter
	drops    drops
	// wake has room for one. Invariant: after each change that can make a write possible before the
	// time that the dispatcher waits for, it has an element, or the dispatcher is about to look.
	wake chan struct{}

	log        atomic.Pointer[klog.Logger]
	dispatcher atomic.Pointer[dispatcher] // nil until the start

	mu           sync.Mutex // guards what follows
	shuttingDown bool
	shutDown     chan struct{} // closed when the first shutdown has ended
	left         error         // of that one; guarded by shutDown
}

// NewBroadcaster returns a broadcaster with default options that writes to sink. See [New].
func NewBroadcaster(sink EventSink) *Broadcaster { return newBroadcaster(sink, Options{}) }

// New returns a broadcaster that writes to sink once it is started. It starts no goroutine before. If
// options are invalid, it returns an error that names each of them, with its value. It also returns an error if
// sink is nil.
func New(sink EventSink, opts Options) (*Broadcaster, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if sink == nil {
		return nil, errNoSink
	}
	return newBroadcaster(sink, opts), nil
}

// newBroadcaster returns a broadcaster with valid options.
func newBroadcaster(sink EventSink, opts Options) *Broadcaster {
	b := &Broadcaster{sink: sink, wake: make(chan struct{}, 1), shutDown: make(chan struct{})}
	if wired, ok := sink.(*wiring.Sink); ok {
		b.wired, b.sink = *wired, wired.EventSink
		opts.workers, opts.clock, opts.listLimit = wired.MaxInFlight, wired.Clock, wired.ListLimit
	}
	b.opts = opts.withDefaults()
	b.clock = b.opts.clock
	b.limiter = newLimiter(b.opts)
	b.lists = newLists(b, b.sink)
	b.tracker = tracker.New(b.opts.tracker(), b.clock.Now())
	b.report = newReporter(b)
	b.watchers.all = make(map[chan *eventsv1.Event]struct{})
	b.counters.requests = make(map[requestKey]*RequestStats)
	return b
}

// NewRecorder returns a recorder that emits events in the name of a controller. scheme knows the
// kinds of objects without a TypeMeta. It can be nil if all have one, or have types of client-go's
// scheme, which is the second choice. If the API server would reject the name, NewRecorder repairs
// it and logs that. The result is a [Recorder]. It can be used concurrently.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, reportingController string) EventRecorderLogger {
	return b.NewRecorderWithOptions(scheme, reportingController, RecorderOptions{})
}

// RecorderOptions of a recorder. The zero value is the default.
type RecorderOptions struct {
	// DistinctNotes is how many series can differ in their notes alone, for controllers whose
	// notes distinguish their events, like those of the legacy recorder. If zero or negative, none.
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
func (b *Broadcaster) NewRecorderWithOptions(scheme *runtime.Scheme, reportingController string, opts RecorderOptions) Recorder {
	id, repairs := sanitize.NewIdentity(reportingController, cmp.Or(opts.ReportingInstance, b.opts.ReportingInstance))
	for _, repair := range repairs {
		// Programs can make a recorder for each reconciliation.
		if b.report.repairs.allow(repair.Field+" "+repair.Given, b.clock.Now()) {
			b.logger().Info("Repaired a name that the API server would reject", "field", repair.Field, "name", repair.Given, "becomes", repair.Used)
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
// When ctx ends, the broadcaster writes what the server does not know yet, and still accepts and
// writes events for [Options].ShutdownTimeout, because emitters can end later. Then it is shut down,
// see [Broadcaster.ShutdownWithContext]. So call that when the last emitter has ended, and before that
// time has passed.
//
// It returns an error if there is no sink, [ErrStarted] if the broadcaster was started before, and
// [ErrShutDown] if it was shut down.
func (b *Broadcaster) StartRecordingToSinkWithContext(ctx context.Context) error {
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
	case b.sink == nil:
		return errNoSink
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
// [Broadcaster.Shutdown] after the manager has returned, which can take its GracefulShutdownTimeout:
// [Options].ShutdownTimeout should not be shorter.
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
// soon afterwards, without Shutdown. It shuts the broadcaster down some time later.
func (b *Broadcaster) outlive(ctx context.Context, d *dispatcher) {
	if b.wait(d.ctx, time.Time{}, ctx.Done()) != nil {
		return
	}
	d.goroutines.Go(func() { _ = b.Flush(d.ctx) }) // the shutdown reports what is left
	if b.sleep(d.ctx, b.opts.ShutdownTimeout) == nil {
		go b.Shutdown() // which waits for this goroutine
	}
}

// Shutdown is [Broadcaster.ShutdownWithContext] with a context that ends after
// [Options].ShutdownTimeout. It logs the error.
func (b *Broadcaster) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), b.opts.ShutdownTimeout)
	defer cancel()
	_ = b.ShutdownWithContext(ctx) // which logs
}

// ShutdownWithContext ends the intake, writes what the server does not know yet, including the current
// counts of ongoing series, and stops. It can end earlier if nothing but retries is left, and the server
// handles no request for 1.5 seconds. What is left, and what is emitted later, is logged, and counted in
// [Stats].Dropped.
//
// It returns at the deadline of ctx, or 3 seconds after ctx is canceled, at the latest; without a deadline,
// when the sink and the handlers have returned. Requests are cut off before the deadline, by a tenth of the
// time and at most 1.5 seconds, so that they can return. If series are left, the error has their number,
// and why: it matches the error of ctx if that was too short.
//
// A further call waits for the first one, until ctx ends, and returns the error of that one.
func (b *Broadcaster) ShutdownWithContext(ctx context.Context) error {
	b.mu.Lock()
	if b.shuttingDown {
		b.mu.Unlock()
		// With a context, because the first call can wait for a handler that makes the second.
		if err := waitFor(ctx, b.shutDown); err != nil {
			return fmt.Errorf("events: another shutdown has not ended: %w", err)
		}
		return b.left
	}
	b.shuttingDown = true
	d := b.dispatcher.Load()
	b.mu.Unlock()
	defer close(b.shutDown)

	logger := b.logger()
	b.tracker.Seal(tracker.DropShutdown)
	handled := b.watchers.close()
	cause := errors.New("the broadcaster has not been started")
	if d != nil {
		cause = b.finish(ctx, logger, d)
	}
	drops := b.tracker.Clear(tracker.DropShutdown, b.clock.Now())
	if cause == nil {
		cause = errors.New("the server does not store them")
	}
	if err := ctx.Err(); err != nil && !errors.Is(cause, err) { // the context has another cause
		cause = fmt.Errorf("%w: %w", err, cause)
	}
	if len(drops) > 0 {
		b.left = fmt.Errorf("events: %d series were left when the broadcaster was shut down: %w", len(drops), cause)
	}
	b.drop(logger, nil, drops)
	b.report.lost(logger, nil, nil, true)
	end, cancel := endOf(ctx, 0)
	defer cancel()
	if err := waitFor(end, handled); err != nil {
		logger.Error(err, "An event handler hangs")
	}
	if err := b.drops.wait(end); err != nil {
		logger.Error(err, "OnDrop hangs")
	}
	if b.wired.Ended != nil {
		b.wired.Ended()
	}
	stats := b.Stats()
	logger.V(2).Info("Stopped recording events", "occurrences", stats.Occurrences, "dropped", stats.Dropped)
	return b.left
}

// endOf returns a context that ends before the deadline of ctx, or a moment after ctx if that was
// canceled, so that what is cut off can return.
func endOf(ctx context.Context, before time.Duration) (end context.Context, cancel context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return context.WithTimeout(context.WithoutCancel(ctx), hopeless)
	case ok:
		return context.WithDeadline(ctx, deadline.Add(-before))
	default:
		return context.WithCancel(ctx)
	}
}

// finish writes what the server does not know yet, and stops d. It returns why something is left, nil if
// nothing is, or the server does not store it.
func (b *Broadcaster) finish(ctx context.Context, logger klog.Logger, d *dispatcher) (cause error) {
	var grace time.Duration // half for the end of requests that are cut off, and half for OnDrop
	flushing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if deadline, ok := ctx.Deadline(); ok {
		grace = min(time.Until(deadline)/10, hopeless)
		var stop context.CancelFunc
		flushing, stop = context.WithDeadline(flushing, deadline.Add(-grace))
		defer stop()
	}
	d.mu.Lock()
	d.failing, d.giveUp = time.Time{}, cancel
	d.mu.Unlock()
	d.hurry.Store(true)
	b.tracker.Hurry(b.clock.Now())
	if err := b.Flush(flushing); err != nil {
		logger.Error(err, "Events were left when the broadcaster was shut down")
		cause = errors.Unwrap(err)
	}
	cancel(nil)
	d.cancel()
	end, stop := endOf(ctx, grace/2)
	defer stop()
	if err := waitFor(end, ended(&d.goroutines)); err != nil {
		logger.Error(err, "A sink hangs")
	}
	return cause
}

// logger returns the logger of the context with which the broadcaster was started.
func (b *Broadcaster) logger() klog.Logger {
	if logger := b.log.Load(); logger != nil {
		return *logger
	}
	return safelog.Guard(klog.Background())
}

// Flush returns when everything that was emitted before the call is on the server,
// including the counts of ongoing series, or is lost and counted in [Stats].Dropped. If ctx ends
// first, or the broadcaster is not running, it returns an error with the number of series left.
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
	b.poke()
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
