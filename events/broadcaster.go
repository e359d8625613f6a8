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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/tracker"
)

// shutdownGrace is how much of the time for a shutdown is kept for ending what
// cannot be finished.
const shutdownGrace = time.Second

// Broadcaster takes in events from its recorders, follows the series that they
// form, and writes those to a sink. Make one with NewBroadcaster or
// NewBroadcasterWithOptions. All methods may be called concurrently, and at any
// time: what is emitted before the start waits in the table, what is emitted
// after Shutdown is counted as dropped.
type Broadcaster struct {
	sink    EventSink
	opts    Options
	invalid error // what is wrong with the options
	clock   clock.WithTicker

	table     *tracker.Table
	deadlines deadlines
	gate      *gate
	watchers  watchers
	flushes   flushes
	counters  counters
	logLimit  logLimit
	dropLog   dropLog
	offering  atomic.Int32 // how many calls of OnDrop are under way
	failures  failures
	limiter   *rate.Limiter

	log    atomic.Pointer[klog.Logger]
	writer atomic.Pointer[writer] // nil until the start

	mu           sync.Mutex // guards starting and stopping
	started      bool
	identities   map[identity]struct{} // in whose names events are emitted
	shuttingDown bool
	shutDown     chan struct{} // closed when Shutdown has ended
}

// NewBroadcaster returns a broadcaster with default options. See
// NewBroadcasterWithOptions.
func NewBroadcaster(sink EventSink) *Broadcaster {
	return NewBroadcasterWithOptions(sink, Options{})
}

// NewBroadcasterWithOptions returns a broadcaster that writes to sink once it is
// started. It starts no goroutine before that. If the options cannot be used,
// the start returns the error that Options.Validate gives.
func NewBroadcasterWithOptions(sink EventSink, opts Options) *Broadcaster {
	b := &Broadcaster{sink: sink, opts: opts.withDefaults(), identities: make(map[identity]struct{}), shutDown: make(chan struct{})}
	if b.invalid = opts.Validate(); b.invalid != nil {
		// It will never write, but it must take in what is emitted.
		b.opts = Options{OnDrop: opts.OnDrop, Clock: opts.Clock}.withDefaults()
	}
	b.clock = b.opts.Clock
	b.table = tracker.NewTable(b.opts.table(), b.clock.Now())
	b.gate = newGate(b.clock)
	b.limiter = newLimiter(b.opts)
	b.watchers.queue = b.opts.WatcherQueue
	b.logLimit.interval = logInterval
	b.dropLog = newDropLog(logInterval)
	b.failures.limit.interval = logInterval
	b.deadlines = deadlines{
		clock:     b.clock,
		intervals: b.opts.intervals(),
		table:     b.table,
		due:       b.due,
		wake:      make(chan struct{}, 1),
	}
	return b
}

// NewRecorder returns a recorder that emits events in the name of a controller.
// scheme is asked for the kinds of objects that do not say it themselves; it may
// be nil if all do. A name that the API server would not take is repaired, which
// is logged here. The recorder is an AnnotatedEventRecorder as well, and may be
// used concurrently.
func (b *Broadcaster) NewRecorder(scheme *runtime.Scheme, reportingController string) EventRecorderLogger {
	return b.NewRecorderWithOptions(scheme, reportingController, RecorderOptions{})
}

// RecorderOptions of a recorder. The zero value is the default.
type RecorderOptions struct {
	// DistinctNotes is Options.DistinctNotes for the events of this recorder. If
	// zero, it is that of the broadcaster. If negative, notes tell nothing apart.
	DistinctNotes int
}

// NewRecorderWithOptions is NewRecorder for one that differs from others of the
// broadcaster, or whose annotations are wanted without a type assertion: the type
// that NewRecorder returns is client-go's.
func (b *Broadcaster) NewRecorderWithOptions(scheme *runtime.Scheme, reportingController string, opts RecorderOptions) Recorder {
	id, repairs := newIdentity(reportingController, b.opts.ReportingInstance)
	for _, repair := range repairs {
		b.logger().Info("Repaired a name that the API server would not take", "field", repair.field, "name", repair.given, "becomes", repair.used)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.identities[id]; !known {
		b.identities[id] = struct{}{}
		if w := b.writer.Load(); w != nil && !b.shuttingDown && w.ctx.Err() == nil {
			w.goroutines.Go(func() { w.rebuild(id) })
		}
	}
	return &recorder{source: &source{
		broadcaster:   b,
		references:    references{scheme: scheme},
		identity:      id,
		distinctNotes: max(cmp.Or(opts.DistinctNotes, b.opts.DistinctNotes), 0),
	}}
}

// StartRecordingToSink starts to write events to the sink until stopCh is
// closed. It logs what StartRecordingToSinkWithContext would return.
//
// Deprecated: use StartRecordingToSinkWithContext, as with client-go.
func (b *Broadcaster) StartRecordingToSink(stopCh <-chan struct{}) {
	ctx := wait.ContextForChannel(stopCh)
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil {
		b.logger().Error(err, "Cannot record events")
	}
}

// StartRecordingToSinkWithContext starts to write events to the sink, what was
// emitted before included. It logs to the logger of ctx.
//
// When ctx ends, the broadcaster goes on to take in events. It writes what there
// is for Options.ShutdownTimeout more and stops to write; a later Shutdown makes
// up for it. So call Shutdown when the last emitter has ended, not when it is
// asked to end.
//
// It returns an error if the options cannot be used or there is no sink, ErrStarted
// if it was started before, and ErrShutDown if it was shut down.
func (b *Broadcaster) StartRecordingToSinkWithContext(ctx context.Context) error {
	if b.invalid != nil {
		return fmt.Errorf("events: cannot start: %w", b.invalid)
	}
	if b.sink == nil {
		return errors.New("events: cannot start: no sink")
	}
	logger := guarded(klog.FromContext(ctx))
	if err := b.start(ctx, logger); err != nil {
		return err
	}
	logger.V(2).Info("Recording events", "scope", b.opts.Scope.String(), "sink", fmt.Sprintf("%T", b.sink))
	return nil
}

func (b *Broadcaster) start(ctx context.Context, logger klog.Logger) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.shuttingDown:
		return ErrShutDown
	case b.started:
		return ErrStarted
	}
	b.started = true
	b.log.Store(&logger)
	w := b.startWriter()
	w.goroutines.Go(func() { b.outlive(ctx, w) })
	return nil
}

// Start is StartRecordingToSinkWithContext for programs that run under a manager
// of controller-runtime: `mgr.Add(broadcaster)` starts it with the manager, or
// under Scope SameController when the leader is elected. It returns when ctx
// ends; Shutdown is still to be called, after the manager has returned.
//
// It is no error if the broadcaster was started before, as it is by the events of
// leader election when these go to it through compat. Then ctx ends nothing but
// the wait.
func (b *Broadcaster) Start(ctx context.Context) error {
	if err := b.StartRecordingToSinkWithContext(ctx); err != nil && !errors.Is(err, ErrStarted) {
		return err
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection reports whether the broadcaster is to be started by the
// leader alone: under Scope SameController.
func (b *Broadcaster) NeedLeaderElection() bool { return b.opts.Scope == SameController }

// outlive stops w some time after ctx has ended.
func (b *Broadcaster) outlive(ctx context.Context, w *writer) {
	select {
	case <-ctx.Done():
	case <-w.ctx.Done():
		return
	}
	timer := b.clock.NewTimer(b.opts.ShutdownTimeout)
	defer timer.Stop()
	select {
	case <-timer.C():
		b.mu.Lock()
		defer b.mu.Unlock()
		if !b.shuttingDown { // or else it has time of its own
			w.stop()
		}
	case <-w.ctx.Done():
	}
}

// Shutdown ends the intake, writes what the server does not know yet, the
// current counts of running series included, and stops. It returns after
// Options.ShutdownTimeout at the latest, and logs and counts what was left then.
// A second call waits for the first, for as long at most.
func (b *Broadcaster) Shutdown() {
	b.mu.Lock()
	if b.shuttingDown {
		b.mu.Unlock()
		// Not for ever: it may be called by what the first call waits for.
		ctx, cancel := context.WithTimeout(context.Background(), b.opts.ShutdownTimeout)
		defer cancel()
		_ = waitFor(ctx, b.shutDown)
		return
	}
	b.shuttingDown = true
	b.mu.Unlock()
	defer close(b.shutDown)

	logger := b.logger()
	ctx, cancel := context.WithTimeout(context.Background(), b.opts.ShutdownTimeout)
	defer cancel()
	b.table.Seal(DropShutdown)
	handled := b.watchers.close()
	if w := b.writer.Load(); w != nil {
		b.finish(ctx, logger, w)
	}
	b.apply(logger, nil, b.table.Clear(DropShutdown))
	for _, losses := range b.dropLog.take(b.clock.Now(), true) {
		losses.write(logger)
	}
	if err := waitFor(ctx, handled); err != nil {
		logger.Error(err, "An event handler does not return")
	}
	stats := b.Stats()
	logger.V(2).Info("Stopped recording events", "occurrences", stats.Occurrences, "requests", stats.Requests(), "dropped", stats.Dropped)
}

// finish writes what the server does not know yet and ends the writing, which
// was w's so far.
func (b *Broadcaster) finish(ctx context.Context, logger klog.Logger, w *writer) {
	// Requests that are cut off take a moment to end, and that is part of the
	// time too.
	grace := min(b.opts.ShutdownTimeout/10, shutdownGrace)
	flushing, cancel := context.WithTimeout(ctx, b.opts.ShutdownTimeout-grace)
	defer cancel()
	if w.ctx.Err() != nil {
		// It was stopped when its context had ended. Its last requests must have
		// returned before others are made for the same series.
		if err := waitFor(flushing, ended(&w.goroutines)); err != nil {
			logger.Error(err, "A sink does not return")
			return
		}
		w = b.startWriter()
	}
	w.hurry.Store(true)
	if err := b.Flush(flushing); err != nil {
		logger.Error(err, "Events were left when the broadcaster was shut down")
	}
	w.stop()
	if err := waitFor(ctx, ended(&w.goroutines)); err != nil {
		logger.Error(err, "A sink does not return")
	}
}

// due is called when a deadline of a series has come.
func (b *Broadcaster) due(e *tracker.Entry, due heartbeat.Due) {
	switch due {
	case heartbeat.None:
	case heartbeat.Heartbeat:
		b.apply(b.logger(), nil, b.table.Beat(e))
	case heartbeat.Finish, heartbeat.Forget:
		b.apply(b.logger(), nil, b.table.Expire(e, b.clock.Now()))
	}
}

// apply does what a change to the table means. err is what the server said, if
// that was the cause.
func (b *Broadcaster) apply(logger klog.Logger, err error, eff tracker.Effects) {
	if w := b.writer.Load(); w != nil && len(eff.Dirty) > 0 {
		now := b.clock.Now()
		for _, e := range eff.Dirty {
			w.add(e, now)
		}
	}
	if len(eff.Ended) > 0 {
		b.deadlines.remove(eff.Ended...)
		b.flushes.check(b.table, eff.Ended...)
	}
	b.dropped(logger, err, eff.Dropped...)
}

// logger returns the logger of the context that the broadcaster was started
// with.
func (b *Broadcaster) logger() klog.Logger {
	if logger := b.log.Load(); logger != nil {
		return *logger
	}
	return guarded(klog.Background())
}
