package events

import (
	"sync"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
)

const (
	// slowAfter is when a call takes long: it no longer counts against Options.Workers. An
	// admission webhook that hangs takes up to 30 seconds, and the calls for its namespaces
	// must not hold up others.
	slowAfter = 100 * time.Millisecond
	// maxSlow bounds how many calls that take long do not count.
	maxSlow = 64
	// watchdogGrace is how long a sink may take to return after the context of its
	// call has ended.
	watchdogGrace = time.Second
)

// watchdog watches the calls of a goroutine, one after the other. A call that takes long
// leaves its place to another one. A call of a sink that ignores its context can hang for
// ever. Its series waits, because a late write must not follow a newer one. Nothing else
// waits: the watchdog abandons the call, and a pause can end without it.
type watchdog struct {
	d     *dispatcher
	timer *time.Timer
	fired bool // the timer can have fired: another call needs another watchdog
	began time.Time

	mu       sync.Mutex
	write    *tracker.Write
	state    callState
	released bool // the call does not count against Options.Workers
}

// callState is what a watchdog knows of a call.
type callState uint8

const (
	callRuns callState = iota
	callIsSlow
	callHangs // and that is logged
	callReturned
)

// watch starts to watch a call that begins now. It returns the watchdog of the previous
// call of the goroutine, if there is one, or else a new one.
func (d *dispatcher) watch(write *tracker.Write, w *watchdog) *watchdog {
	if w == nil || w.fired {
		w = &watchdog{d: d}
	}
	began := d.b.clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write, w.began, w.state, w.released = write, began, callRuns, false
	// Real time, like the context of the request.
	if w.timer == nil {
		w.timer = time.AfterFunc(slowAfter, w.fire)
	} else {
		w.timer.Reset(slowAfter)
	}
	return w
}

// fire is called when the call takes long, and when it should have returned.
func (w *watchdog) fire() {
	w.mu.Lock()
	write, began, was := w.write, w.began, w.state
	if was == callReturned || w.d.ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	if was == callRuns {
		w.state, w.released = callIsSlow, w.d.release()
		w.timer.Reset(requestTimeout + watchdogGrace - slowAfter)
	}
	w.mu.Unlock()
	now := w.d.b.clock.Now()
	if was == callRuns {
		w.d.b.tracker.Slow(write, now)
	} else {
		w.expire(write, began, now)
	}
	w.d.poke()
}

// release lets another request take the place of one that takes long, unless too many do.
func (d *dispatcher) release() (ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slow == maxSlow {
		return false
	}
	d.busy--
	d.slow++
	return true
}

// expire abandons the call, which should have returned.
func (w *watchdog) expire(write *tracker.Write, began, now time.Time) {
	b := w.d.b
	b.tracker.Abandon(write, now)
	suppressed, ok := b.logLimit.allow("hangs", now)
	if !ok {
		return
	}
	w.mu.Lock()
	if w.state != callReturned {
		w.state = callHangs
	}
	w.mu.Unlock()
	b.logger().Error(nil, "A call of the sink hangs although its context has ended", "since", began,
		"waiting", b.waitingSeries(), "suppressed", suppressed)
}

// stop records that the call has returned.
func (w *watchdog) stop() {
	w.fired = !w.timer.Stop()
	w.mu.Lock()
	was := w.state
	w.state = callReturned
	w.mu.Unlock()
	if was == callHangs {
		b := w.d.b
		b.logger().Info("A call of the sink has returned after all", "after", b.clock.Since(w.began))
	}
}
