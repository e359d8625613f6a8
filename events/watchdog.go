package events

import (
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
)

const (
	// slowAfter is when a call takes long: it no longer counts against Options.Workers. An
	// admission webhook that hangs takes up to 30 seconds, and a sink that ignores its context
	// can take for ever. Its series waits, because a late write must not follow a newer one.
	// Nothing else waits.
	slowAfter = 100 * time.Millisecond
	// maxSlow bounds how many calls that take long do not count.
	maxSlow = 64
)

// watchdog watches the calls of a goroutine, one after the other. A call that takes long
// leaves its place to another one.
type watchdog struct {
	d     *dispatcher
	timer *time.Timer
	began time.Time // of the call
	fired bool      // the timer may be firing: the next call needs another watchdog

	// dispatcher.mu guards these.
	write    *tracker.Write // nil if the call has returned
	released bool           // the call does not count against Options.Workers
}

// watch starts to watch a call that begins now.
func (w *watchdog) watch(write *tracker.Write) {
	w.began = w.d.b.clock.Now()
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.write, w.released = write, false
	// Real time, like the context of the request.
	if w.timer == nil {
		w.timer = time.AfterFunc(slowAfter, w.fire)
	} else {
		w.timer.Reset(slowAfter)
	}
}

// fire lets another request take the place of a call that takes long, unless too many do.
func (w *watchdog) fire() {
	d := w.d
	d.mu.Lock()
	write := w.write
	if write == nil || d.ctx.Err() != nil {
		d.mu.Unlock()
		return
	}
	if d.slow < maxSlow {
		d.busy--
		d.slow++
		w.released = true
	}
	d.mu.Unlock()
	d.b.tracker.Slow(write, d.b.clock.Now())
	d.poke()
}

// stop records that the call has returned. released does not change any more.
func (w *watchdog) stop() {
	w.fired = !w.timer.Stop()
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.write = nil
}
