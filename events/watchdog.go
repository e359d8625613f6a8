package events

import (
	"sync"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
)

// watchdogGrace is how long a sink may take to return after the context of its
// call has ended.
const watchdogGrace = time.Second

// watchdog watches the calls of a goroutine, one after the other. A call of a sink that
// ignores its context can hang for ever. Its series waits, because a late write must not
// follow a newer one. Nothing else waits: the watchdog abandons the call, which no longer
// counts against Options.Workers, and a pause can end without it. As many calls as
// Options.Workers can be abandoned at a time.
type watchdog struct {
	d     *dispatcher
	timer *time.Timer
	fired bool // the timer can have fired: another call needs another watchdog
	began time.Time

	mu        sync.Mutex
	write     *tracker.Write
	returned  bool
	abandoned bool
	logged    bool // that the call hangs
}

// watch starts to watch a call that begins now. It returns the watchdog of the previous
// call of the goroutine, if there is one, or else a new one.
func (d *dispatcher) watch(write *tracker.Write, w *watchdog) *watchdog {
	if w == nil || w.fired {
		w = &watchdog{d: d}
	}
	began := d.b.clock.Now()
	w.mu.Lock()
	w.write, w.began, w.returned = write, began, false
	w.mu.Unlock()
	// Real time, like the context of the request.
	if w.timer == nil {
		w.timer = time.AfterFunc(requestTimeout+watchdogGrace, w.expire)
	} else {
		w.timer.Reset(requestTimeout + watchdogGrace)
	}
	return w
}

// expire is called when the call should have returned.
func (w *watchdog) expire() {
	d, b := w.d, w.d.b
	now := b.clock.Now()
	w.mu.Lock()
	if w.returned || d.ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	suppressed, ok := b.logLimit.allow("hangs", now)
	w.logged = ok
	d.mu.Lock()
	if d.abandoned < b.opts.Workers {
		w.abandoned = true
		d.busy--
		d.abandoned++
	}
	abandoned := d.abandoned
	d.mu.Unlock()
	w.mu.Unlock()

	b.tracker.Abandon(w.write, now)
	d.poke()
	if ok {
		b.logger().Error(nil, "A call of the sink hangs although its context has ended", "since", w.began,
			"abandonedCalls", abandoned, "waiting", b.waitingSeries(), "suppressed", suppressed)
	}
}

// stop records that the call has returned.
func (w *watchdog) stop() {
	w.fired = !w.timer.Stop()
	w.mu.Lock()
	w.returned = true
	logged := w.logged
	w.mu.Unlock()
	if logged {
		b := w.d.b
		b.logger().Info("A call of the sink has returned after all", "after", b.clock.Since(w.began))
	}
}
