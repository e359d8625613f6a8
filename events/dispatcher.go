package events

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/internal/eventclient"
	"github.com/eventseries/eventseries/internal/eventtext"
	"github.com/eventseries/eventseries/internal/schedule"
	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// requestTimeout ends a request without a response. API servers end one after a minute.
const requestTimeout = 30 * time.Second

// newLimiter returns the limiter of Options.QPS. Package rate computes delays that overflow if they are
// longer than some years.
func newLimiter(opts Options) *rate.Limiter {
	if opts.QPS < 0 || opts.QPS > math.MaxInt32/2 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	qps := max(float64(opts.QPS), 1/series.MaxDuration.Seconds())
	return rate.NewLimiter(rate.Limit(qps), opts.Burst)
}

// dispatcher makes the requests that the tracker wants, from its start to its stop: when the
// tracker has a write, and the rate limiter permits it. The goroutine of a request makes the next
// one if it can be made then. Otherwise run starts that at its time.
type dispatcher struct {
	b      *Broadcaster
	limit  rate.Limit      // of b.limiter; constant
	ctx    context.Context // ends when the dispatcher is stopped. No request begins after that
	cancel context.CancelFunc
	// hurry is set once, when little time is left, and never reset: the dispatcher ignores the
	// rate limiter, and lists end.
	hurry atomic.Bool
	// goroutines are run, those of requests, of the lists, and of the end of the context. Shutdown
	// waits for all. Not ideal: one for each request in flight, because a sink can block for ever.
	goroutines sync.WaitGroup

	mu      sync.Mutex              // guards the limiter, the choice of the next write, and what follows
	tokenAt time.Time               // when the limiter permits the next request
	failing time.Time               // since when the server has handled no request; zero if it has handled the latest
	giveUp  context.CancelCauseFunc // ends the writing of a shutdown; nil before
}

// startDispatcher starts a dispatcher. The caller ensures that no other one runs.
func (b *Broadcaster) startDispatcher() *dispatcher {
	d := &dispatcher{b: b, limit: b.limiter.Limit()}
	// client-go logs to the logger of the context as well.
	d.ctx, d.cancel = context.WithCancel(klog.NewContext(context.Background(), b.logger()))
	d.ctx = eventclient.WithCharge(d.ctx, func() { d.takeToken() })
	b.dispatcher.Store(d)
	d.goroutines.Go(d.run)
	return d
}

// poke makes the dispatcher look for something to do, once it is started.
func (b *Broadcaster) poke() { signal(b.wake) }

// signal wakes the goroutine that waits for wake, which has room for one element.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default: // it has not looked since the last one
	}
}

// run makes requests until the dispatcher is stopped.
func (d *dispatcher) run() {
	for d.ctx.Err() == nil {
		w, wake := d.next()
		if w != nil {
			d.goroutines.Go(func() { d.work(w) })
			continue
		}
		_ = d.b.wait(d.ctx, earlier(wake, d.b.report.lost(d.b.logger(), nil, nil, false)), d.b.wake)
	}
}

// next returns a write to make now, which has a token of the rate limiter. If there is none, wake is when to come
// back: zero if time alone changes nothing.
func (d *dispatcher) next() (w *tracker.Write, wake time.Time) {
	d.mu.Lock() // a token can be taken by one request only
	now := d.b.clock.Now()
	mayStart := !d.tokenAt.After(now) || d.hurry.Load()
	w, drops, wake := d.b.tracker.Next(now, mayStart)
	switch {
	case w != nil:
		d.charge(now)
	case !mayStart:
		wake = earlier(wake, d.tokenAt)
	}
	d.mu.Unlock()
	d.b.drop(d.b.logger(), nil, drops)
	return w, wake
}

// charge takes a token of the rate limiter for a request at the time now. d.mu is locked.
func (d *dispatcher) charge(now time.Time) {
	limiter := d.b.limiter
	limiter.ReserveN(now, 1)
	d.tokenAt = now
	if missing := 1 - limiter.TokensAt(now); missing > 0 && d.limit < rate.Inf {
		d.tokenAt = now.Add(time.Duration(math.Ceil(missing / float64(d.limit) * float64(time.Second))))
	}
}

// takeToken takes the next token of the rate limiter, and returns for how long to wait until it can be used.
func (d *dispatcher) takeToken() (delay time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.b.clock.Now()
	delay = d.tokenAt.Sub(now)
	d.charge(now)
	return delay
}

// earlier returns the earlier of two times, which are zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// work makes the request of a write, and those that can be made when it has ended.
func (d *dispatcher) work(w *tracker.Write) {
	defer d.b.poke() // also if the sink ends the goroutine
	for w != nil {
		w = d.workOn(w)
	}
}

// workOn makes the requests of a write and of those that follow at once. They share a context, which takes a third of
// the allocations of a request. It returns the next write, nil if there is none.
func (d *dispatcher) workOn(w *tracker.Write) *tracker.Write {
	ctx, cancel := context.WithTimeout(d.ctx, requestTimeout)
	defer cancel()
	for began := time.Now(); w != nil && time.Since(began) < schedule.SlowAfter; {
		d.write(ctx, w)
		if d.ctx.Err() != nil {
			return nil
		}
		if w, _ = d.next(); w != nil {
			d.b.poke() // the response can permit more than one, or set a deadline that run does not know
		}
	}
	return w
}

// errExited is the error of a request whose sink does not return.
var errExited = errors.New("events: sink called runtime.Goexit, as FailNow of a test does")

// write makes the request of a write and applies the response. A mock can end the goroutine,
// because it fails its test. Only deferred functions run then.
func (d *dispatcher) write(ctx context.Context, w *tracker.Write) {
	began := d.b.clock.Now()
	result, err := tracker.Response{Outcome: schedule.Troubled, MayBeStored: true}, errExited
	defer func() { d.apply(w, result, err, began) }()
	result, err = d.send(ctx, w)
}

func (d *dispatcher) apply(w *tracker.Write, result tracker.Response, err error, began time.Time) {
	b := d.b
	answered := b.clock.Now()
	b.counters.requested(w.Kind.String(), verbOf(w), result.Outcome, answered.Sub(began))
	drops := b.tracker.Apply(w, result, answered)
	d.mu.Lock()
	switch {
	case result.Outcome.Handled():
		d.failing = time.Time{}
	case d.failing.IsZero():
		d.failing = answered
	case d.giveUp != nil && began.Sub(d.failing) >= hopeless && b.tracker.Stats(answered).Hopeful == 0:
		d.giveUp(errHopeless)
	}
	d.mu.Unlock()
	if d.ctx.Err() == nil { // otherwise the stop probably cut off the request
		b.report.wrote(w, result, err)
	}
	b.drop(b.logger(), err, drops)
}

// errHopeless is why a shutdown ends early.
var errHopeless = errors.New("the server handles nothing any more")

// hopeless is for how long a shutdown tries again what fails, if nothing else is left.
const hopeless = 1500 * time.Millisecond

func (d *dispatcher) send(ctx context.Context, w *tracker.Write) (tracker.Response, error) {
	var stored *eventsv1.Event
	result, err := d.callSink(w.Creates(), func() (err error) {
		event := w.Series.Event() // of which a patch needs the namespace and the name
		if w.Creates() {
			stored, err = d.b.sink.Create(ctx, event)
			return err
		}
		patch, err := w.Patch()
		if err == nil {
			stored, err = d.b.sink.Patch(ctx, event, patch)
		}
		return err
	})
	result.Event = stored
	return result, err
}

// callSink calls the sink. A panic of the sink, or of the methods of its error, becomes an error. A pause
// is no longer than EventTTL: what waits for longer is lost.
func (d *dispatcher) callSink(creates bool, call func() error) (result tracker.Response, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = tracker.Response{Outcome: schedule.Troubled, MayBeStored: true}, fmt.Errorf("events: sink panicked: %s", eventtext.Panic(r))
		}
		result.Pause = min(result.Pause, d.b.opts.EventTTL)
	}()
	if err = call(); err != nil {
		_ = err.Error() // the logger calls it later
	}
	return classify(err, creates), err
}

// wait waits until a time, or for ever if it is zero, until wake has an element, or until ctx ends. Then it
// returns the error of ctx.
func (b *Broadcaster) wait(ctx context.Context, until time.Time, wake <-chan struct{}) error {
	var deadline <-chan time.Time
	if !until.IsZero() {
		timer := b.clock.NewTimer(until.Sub(b.clock.Now()))
		defer timer.Stop()
		deadline = timer.C()
	}
	select {
	case <-deadline:
	case <-wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// sleep waits. It returns the error of ctx if that ends before.
func (b *Broadcaster) sleep(ctx context.Context, delay time.Duration) error {
	return b.wait(ctx, b.clock.Now().Add(delay), nil)
}
