package events

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/klog/v2"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/internal/tracker"
)

// requestTimeout ends a request without a response.
const requestTimeout = 30 * time.Second

func newLimiter(opts Options) *rate.Limiter {
	if opts.QPS < 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	// Twice the rate, as client-go has it by default.
	return rate.NewLimiter(rate.Limit(opts.QPS), max(1, int(2*opts.QPS)))
}

// hurriedWorkers is how many requests can be in flight at the end of a shutdown. With a
// response time of 100 ms, the default timeout suffices for 2,500 series, and not for 360.
const hurriedWorkers = 32

// dispatcher makes the requests that the tracker wants, from its start to its stop:
// when the tracker has a write, the rate limiter permits it, and fewer than
// Options.Workers requests are in flight. Each request in flight has a goroutine. If
// another write can be made when its request has ended, it makes that. Otherwise run
// starts the next request when its time has come.
type dispatcher struct {
	b      *Broadcaster
	ctx    context.Context // ends with stop
	cancel context.CancelFunc
	// wake has room for one. Whoever gives the dispatcher something to do sends.
	wake chan struct{}
	// lists are requests for pages of a list, and listing is the number of those that
	// are not made yet.
	lists   chan *listRequest
	listing atomic.Int32
	// hurry is set when little time is left: the rate limiter is ignored, and each
	// request that succeeds permits one more at a time.
	hurry      atomic.Bool
	goroutines sync.WaitGroup

	// requests passes a request to an idle goroutine, whose stack has grown already.
	requests chan call

	// Invariant: busy + idle <= workers, unless workers has just decreased.
	mu        sync.Mutex
	workers   int       // Options.Workers, or up to hurriedWorkers in a shutdown
	busy      int       // requests in flight that count against workers
	idle      int       // goroutines that wait for a request
	abandoned int       // requests in flight that do not count, because they hang
	reserved  time.Time // of the latest reservation: the limiter counts time twice that goes back
}

// call is a call of the sink: a write, or else a list.
type call struct {
	write *tracker.Write
	list  *listRequest
}

// listRequest asks for one page of a list. The dispatcher decides when it is made.
type listRequest struct {
	make func() tracker.Result
	done chan struct{} // closed when make has returned

	pass     heartbeat.Pass // the right to make it
	returned sync.Once      // guards the return of pass
}

// startDispatcher starts a dispatcher. The caller ensures that no other one runs.
func (b *Broadcaster) startDispatcher() *dispatcher {
	d := &dispatcher{b: b, wake: make(chan struct{}, 1), lists: make(chan *listRequest), requests: make(chan call), workers: b.opts.Workers}
	// client-go logs to the logger of the context as well.
	d.ctx, d.cancel = context.WithCancel(klog.NewContext(context.Background(), b.logger()))
	b.dispatcher.Store(d)
	d.goroutines.Go(d.run)
	d.goroutines.Go(d.logDrops)
	return d
}

// poke makes the dispatcher look for something to do.
func (d *dispatcher) poke() {
	select {
	case d.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run makes requests until the dispatcher is stopped.
func (d *dispatcher) run() {
	var list *listRequest // the one that waits
	timer := timer{clock: d.b.clock}
	defer timer.stop()
	for d.ctx.Err() == nil {
		d.advance(d.b.clock.Now())
		next := d.startRequests(&list)
		lists := d.lists
		if list != nil {
			lists = nil // one at a time
		}
		select {
		case <-d.wake:
		case list = <-lists:
		case <-timer.set(next):
		case <-d.ctx.Done():
		}
	}
	if list != nil {
		close(list.done) // it is never made
	}
}

// startBatch bounds how many requests start before deadlines are handled again: the
// responses of a fast sink without a rate limit leave no time for them.
const startBatch = 1000

// startRequests starts the requests that can be made now, and returns when to come
// back. The time is zero if time alone changes nothing.
func (d *dispatcher) startRequests(list **listRequest) (next time.Time) {
	for range startBatch {
		if !d.hasRoom() {
			next, _ = d.b.tracker.Wake(d.b.clock.Now(), false)
			return next
		}
		c, next, ok := d.take(list)
		if !ok {
			return next
		}
		d.enter(c)
	}
	return d.b.clock.Now()
}

// take returns a request to make now, which has a token of the rate limiter. If there is
// none, ok is false, and next is when to come back, as in startRequests.
func (d *dispatcher) take(list **listRequest) (c call, next time.Time, ok bool) {
	now := d.b.clock.Now()
	advance, request := d.b.tracker.Wake(now, *list != nil)
	if request.IsZero() {
		return call{}, advance, false
	}
	token, at, ok := d.reserve(request, now)
	if !ok {
		return call{}, earlier(advance, at), false
	}
	if c, ok = d.pick(list, at); !ok {
		// Another goroutine was faster, or all that is ready waits at closed gates now.
		token.CancelAt(at)
		return call{}, now, false
	}
	return c, time.Time{}, true
}

// advance handles the deadlines up to now.
func (d *dispatcher) advance(now time.Time) {
	b := d.b
	b.drop(b.logger(), nil, b.track(func() []tracker.Drop { return b.tracker.Advance(now) }))
}

// reserve takes a token of the rate limiter at the time at, for a request that the tracker
// has from the given time. ok is false if the request cannot be made before at.
func (d *dispatcher) reserve(request, now time.Time) (token rate.Reservation, at time.Time, ok bool) {
	if request.After(now) {
		return token, request, false
	}
	d.mu.Lock() // a reservation of another goroutine in between would keep the token
	defer d.mu.Unlock()
	at = now
	// Goroutines come here out of order. A clock that was set back is believed.
	if ahead := d.reserved.Sub(at); ahead > 0 && ahead < time.Second {
		at = d.reserved
	}
	d.reserved = at
	token = *d.b.limiter.ReserveN(at, 1) // a pointer would be allocated
	if delay := token.DelayFrom(at); delay > 0 && !d.hurry.Load() {
		token.CancelAt(at)
		return token, at.Add(delay), false
	}
	return token, at, true
}

// pick returns the request to make next. A list goes first: it is rare, and writes can go
// on for long.
func (d *dispatcher) pick(list **listRequest, now time.Time) (c call, ok bool) {
	b := d.b
	if l := *list; l != nil {
		if pass, ok := b.tracker.Admit(now); ok {
			*list, l.pass = nil, pass
			d.listing.Add(-1)
			return call{list: l}, true
		}
	}
	b.drop(b.logger(), nil, b.track(func() (drops []tracker.Drop) {
		c.write, drops, ok = b.tracker.Next(now)
		return drops
	}))
	return c, ok
}

// follow returns the write to make in place of a request that has just ended. ok is false
// if none can be made now, or if a list waits.
func (d *dispatcher) follow() (c call, ok bool) {
	if d.ctx.Err() != nil || d.listing.Load() > 0 {
		return call{}, false
	}
	d.advance(d.b.clock.Now()) // run sleeps until the deadlines that it knows
	var none *listRequest
	if c, _, ok = d.take(&none); ok && d.hasRoom() {
		d.poke() // the response before can have opened a gate, or set a deadline that run does not know
	}
	return c, ok
}

// earlier returns the earlier of two times, of which a can be zero for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// hasRoom reports whether one more request can be in flight.
func (d *dispatcher) hasRoom() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy < d.workers
}

// enter makes a request in a goroutine.
func (d *dispatcher) enter(c call) {
	d.mu.Lock()
	d.busy++
	idle := d.idle > 0
	if idle {
		d.idle--
	}
	d.mu.Unlock()
	if idle {
		select {
		case d.requests <- c:
			return
		case <-d.ctx.Done():
		}
	}
	d.goroutines.Go(func() { d.work(c) })
}

// work makes requests, at first the given one, until there are enough goroutines
// without this one.
func (d *dispatcher) work(c call) {
	var w *watchdog
	for {
		w = d.watch(c, w)
		if c.list != nil {
			d.list(c.list, w)
		} else {
			d.write(c.write, w)
		}
		if !w.abandoned {
			if next, ok := d.follow(); ok {
				c = next
				continue
			}
		}
		if !d.leave(w.abandoned) {
			return
		}
		select {
		case c = <-d.requests:
		case <-d.ctx.Done():
			return
		}
	}
}

// leave says that a request has ended. It reports whether the goroutine is to wait
// for another one.
func (d *dispatcher) leave(abandoned bool) (idle bool) {
	defer d.poke()
	d.mu.Lock()
	defer d.mu.Unlock()
	if abandoned {
		d.abandoned--
	} else {
		d.busy--
	}
	if d.busy+d.idle >= d.workers {
		return false
	}
	d.idle++
	return true
}

// write makes the request of a write and applies the response.
func (d *dispatcher) write(write *tracker.Write, w *watchdog) {
	b := d.b
	event, err := d.send(write)
	w.stop()
	answered := b.clock.Now()
	result := classify(err, write.Creates())
	result.Event = event
	b.counters.wrote(write, result.Outcome, answered.Sub(w.began))
	drops := b.track(func() []tracker.Drop { return b.tracker.Apply(write, result, answered) })
	if d.hurry.Load() {
		d.adapt(result.Outcome)
	}
	if d.ctx.Err() == nil { // otherwise the stop probably cut off the request
		b.outages.noteWrite(b, write, result.Outcome, err)
	}
	b.drop(b.logger(), err, drops)
}

// adapt permits one more request at a time after one that has succeeded, in a shutdown. If
// the server pushes back, Options.Workers counts again.
func (d *dispatcher) adapt(outcome tracker.Outcome) {
	d.mu.Lock()
	switch {
	case outcome == tracker.PushedBack:
		d.workers = d.b.opts.Workers
	case outcome == tracker.Written && d.workers < hurriedWorkers:
		d.workers++
	}
	d.mu.Unlock()
	d.poke()
}

// send makes the request of a write and returns the Event that the sink returns.
func (d *dispatcher) send(write *tracker.Write) (event *eventsv1.Event, err error) {
	if write.Creates() {
		err = d.request(func(ctx context.Context) error {
			event, err = d.b.sink.Create(ctx, write.Series.Event())
			return err
		})
		return event, err
	}
	patch, err := write.Patch()
	if err != nil {
		return nil, err
	}
	err = d.request(func(ctx context.Context) error {
		// A sink needs the namespace and the name, but the interface takes an Event.
		event, err = d.b.sink.Patch(ctx, write.Series.Event(), patch)
		return err
	})
	return event, err
}

// list makes a request for a page of a list.
func (d *dispatcher) list(l *listRequest, w *watchdog) {
	result := l.make()
	w.stop()
	d.returnPass(l, result)
	close(l.done)
}

// returnPass says what became of a list. Only the first call counts.
func (d *dispatcher) returnPass(l *listRequest, result tracker.Result) {
	now := d.b.clock.Now()
	l.returned.Do(func() { d.b.tracker.Return(l.pass, result, now) })
}

// abandon says that a request hangs.
func (d *dispatcher) abandon(c call) {
	if c.list != nil {
		d.returnPass(c.list, tracker.Result{Outcome: tracker.Troubled})
		return
	}
	d.b.tracker.Abandon(c.write, d.b.clock.Now())
}

// request calls the sink. Whatever the sink does, it ends in an error.
func (d *dispatcher) request(call func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("events: sink panicked: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(d.ctx, requestTimeout)
	defer cancel()
	if err = call(ctx); err != nil {
		// The methods of the error are code of the user, too, and are called without
		// protection from here on. A nil *StatusError panics, for example.
		classify(err, true)
		_ = err.Error()
	}
	return err
}

// sleep waits. It returns false if the dispatcher is stopped before.
func (d *dispatcher) sleep(delay time.Duration) bool {
	timer := d.b.clock.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-d.ctx.Done():
		return false
	}
}
