package events

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"golang.org/x/time/rate"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// How a write is tried again: after a second, then after twice as long each
// time, up to two minutes; each with up to a fifth on top.
const (
	retryFirst  = time.Second
	retryMax    = 2 * time.Minute
	retryJitter = 0.2
)

// writer brings the server up to what the table says, from its start to its
// stop. The queue holds the entries that may have something to be written, never
// what is to be written: that is looked up when their turn has come.
type writer struct {
	b      *Broadcaster
	ctx    context.Context // ends with stop
	cancel context.CancelFunc
	queue  workqueue.TypedDelayingInterface[*tracker.Entry]
	// backoff knows how often an entry has failed. The queue has no rate limiter
	// of its own, since that would know no jitter.
	backoff workqueue.TypedRateLimiter[*tracker.Entry]
	backlog backlog // what is in the queue, or will be again
	// hurry is set when there is little time left, so that what fails is tried
	// again soon.
	hurry      atomic.Bool
	overdue    atomic.Int64 // how many calls do not return
	replaced   atomic.Int64 // how many workers are, for that reason
	goroutines sync.WaitGroup
}

func newLimiter(opts Options) *rate.Limiter {
	if opts.QPS < 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(opts.QPS), opts.Burst)
}

// startWriter makes a writer and puts everything into its queue that the server
// does not know. The caller sees to it that there is one writer at a time.
func (b *Broadcaster) startWriter() *writer {
	w := &writer{b: b}
	// client-go logs to the logger of the context as well.
	w.ctx, w.cancel = context.WithCancel(klog.NewContext(context.Background(), b.logger()))
	w.queue = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[*tracker.Entry]{
		Clock: b.clock,
		Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[*tracker.Entry]{Clock: b.clock, Queue: newLanes()}),
	})
	w.backoff = workqueue.NewTypedItemExponentialFailureRateLimiter[*tracker.Entry](retryFirst, retryMax)
	// From here on whoever makes an entry dirty puts it into the queue himself.
	b.writer.Store(w)
	now := b.clock.Now()
	for _, p := range b.table.Flush() {
		w.add(p.Entry, now)
	}
	w.goroutines.Go(func() { b.deadlines.run(w.ctx) })
	w.goroutines.Go(w.logDrops)
	for id := range b.identities {
		w.goroutines.Go(func() { w.rebuild(id) })
	}
	for range b.opts.Workers {
		w.goroutines.Go(w.work)
	}
	return w
}

// add puts e, which has something to be written, into the queue.
func (w *writer) add(e *tracker.Entry, now time.Time) {
	w.backlog.add(e, now)
	w.queue.Add(e)
}

// stop ends the goroutines of w and the requests that are under way. It does not
// wait.
func (w *writer) stop() {
	w.cancel()
	w.queue.ShutDown()
}

// work is a worker. It takes its turn with the rate limiter before it takes an
// entry, so that what waits does so in the queue, which is ordered.
func (w *writer) work() {
	for w.throttle() {
		for made := false; !made; {
			e, down := w.queue.Get()
			if down {
				return
			}
			if w.ctx.Err() != nil {
				w.queue.Done(e)
				return
			}
			var replaced bool
			made, replaced = w.process(e)
			w.queue.Done(e)
			if replaced {
				return
			}
		}
	}
}

// throttle waits for the rate limiter, unless there is little time left. It
// returns false if w was stopped.
func (w *writer) throttle() bool {
	if w.hurry.Load() {
		return w.ctx.Err() == nil
	}
	now := w.b.clock.Now()
	delay := w.b.limiter.ReserveN(now, 1).DelayFrom(now)
	if delay <= 0 {
		return w.ctx.Err() == nil
	}
	return w.sleep(delay)
}

// sleep waits. It returns false if w was stopped before.
func (w *writer) sleep(d time.Duration) bool {
	timer := w.b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-w.ctx.Done():
		return false
	}
}

// process makes the write that e waits for, if there is one, and reports whether
// a request was made, and whether that took so long that another worker has taken
// the place of this one.
func (w *writer) process(e *tracker.Entry) (made, replaced bool) {
	b := w.b
	p, ok := b.gate.enter(w.ctx)
	if !ok {
		return false, false
	}
	w.backlog.begin(e)
	write, eff, ok := b.table.Begin(e, b.clock.Now())
	b.apply(b.logger(), nil, eff)
	if !ok {
		w.backlog.end(e, false, false, b.clock.Now())
		b.gate.leave(p, false, verdict{})
		w.backoff.Forget(e)
		b.flushes.check(b.table, e)
		return false, false
	}
	call := w.watch(&p, true)
	sent := b.clock.Now()
	event, err := w.send(&write)
	answered := b.clock.Now()
	replaced = call.end()
	v := classify(err, write.Creates())
	b.gate.leave(p, true, v)
	b.counters.wrote(&write, v.outcome, answered.Sub(sent))
	if w.ctx.Err() == nil { // or else it was probably cut off
		b.failures.note(b, &write, v, err)
	}
	again := w.conclude(e, write, event, v, err)
	w.backlog.end(e, again, v.outcome != written || looksAbout(&write), answered)
	b.flushes.check(b.table, e)
	return true, replaced
}

// send makes the request of a write and returns the Event that the sink answers
// with.
func (w *writer) send(write *tracker.Write) (event *eventsv1.Event, err error) {
	if write.Creates() {
		err = w.request(func(ctx context.Context) error {
			event, err = w.b.sink.Create(ctx, write.Series.Event())
			return err
		})
		return event, err
	}
	patch, err := write.Patch()
	if err != nil {
		return nil, err
	}
	err = w.request(func(ctx context.Context) error {
		// A sink needs no more of the Event than where it is, but the interface
		// has it whole, so it gets all that is known.
		event, err = w.b.sink.Patch(ctx, write.Series.Event(), patch)
		return err
	})
	return event, err
}

// request calls the sink. Whatever a sink does, it ends in an error.
func (w *writer) request(call func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("events: sink panicked: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(w.ctx, w.b.opts.RequestTimeout)
	defer cancel()
	return call(ctx)
}

// conclude tells the table what became of a write, and sees to what follows. It
// reports whether e comes into the queue again.
func (w *writer) conclude(e *tracker.Entry, write tracker.Write, event *eventsv1.Event, v verdict, err error) (again bool) {
	b := w.b
	var eff tracker.Effects
	switch v.outcome {
	case written:
		if write.Kind == tracker.WriteLook {
			again, eff = b.table.Found(e, write, event, b.clock.Now())
		} else {
			if event != nil {
				write.Version = event.ResourceVersion
			}
			again, eff = b.table.Written(e, write, b.clock.Now())
		}
	case gone:
		again, eff = b.table.Gone(e, write)
	case changed:
		again, eff = b.table.Changed(e, write)
	case taken:
		b.table.Taken(e, write, b.clock.Now())
		again = true
	case refused:
		again, eff = b.table.Refuse(e, write, v.reason, b.clock.Now())
	case pushedBack, troubled, denied:
		eff = b.table.Failed(e, write)
	}
	b.apply(b.logger(), err, eff)
	switch v.outcome {
	case written, refused:
		if !looksAbout(&write) {
			w.backoff.Forget(e)
		}
		b.deadlines.schedule(e)
	case troubled:
		w.retry(e)
		return true
	case taken, changed:
		// The entry looks at once what is there. If that did not help, something is wrong,
		// or somebody else is as quick, and it must not become a hot loop.
		if !again || w.backoff.NumRequeues(e) > 0 {
			w.retry(e)
			return true
		}
		w.backoff.When(e)
	case denied:
		w.queue.AddAfter(e, w.delay(wait.Jitter(retryMax, retryJitter)))
		return true
	case gone:
		// The table says what is to be done about it.
	case pushedBack:
		// The gate makes it wait.
		again = true
	}
	switch {
	case again && v.outcome == refused && write.Kind == tracker.WriteLook:
		w.retry(e) // perhaps what refused it goes away
	case again:
		w.queue.Add(e)
	}
	return again
}

// looksAbout reports whether a write is no more than a step on the way to what its
// series waits for.
func looksAbout(w *tracker.Write) bool {
	return w.Kind == tracker.WriteLook || w.Kind == tracker.WriteClose
}

// retry puts e into the queue again after its back-off.
func (w *writer) retry(e *tracker.Entry) {
	w.queue.AddAfter(e, w.delay(wait.Jitter(w.backoff.When(e), retryJitter)))
}

// delay shortens a delay when there is little time left.
func (w *writer) delay(d time.Duration) time.Duration {
	if w.hurry.Load() {
		return min(d, retryFirst)
	}
	return d
}
