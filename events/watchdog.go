package events

import (
	"time"

	"github.com/eventseries/eventseries/internal/schedule"
)

// maxReleased bounds how many calls that take long do not count against Options.Workers. If as
// many namespaces begin to hang at the same time, others still get a worker.
const maxReleased = 100

// watchdog watches the calls of a goroutine, one after the other. A call that takes longer than
// [schedule.SlowAfter] leaves its place to another one: an admission webhook that hangs takes up
// to 30 seconds, and a sink that ignores its context can take for ever. Its series waits, because
// a late write must not follow a newer one. Nothing else waits.
type watchdog struct {
	d     *dispatcher
	timer *time.Timer
	began time.Time // of the call
	fired bool      // the timer may be firing: the next call needs another watchdog

	// dispatcher.mu guards these.
	calling  bool // the call has not returned
	released bool // the call does not count against Options.Workers
}

// watch starts to watch a call that begins now.
func (w *watchdog) watch() {
	w.began = w.d.b.clock.Now()
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.calling, w.released = true, false
	// Real time, like the context of the request.
	if w.timer == nil {
		w.timer = time.AfterFunc(schedule.SlowAfter, w.fire)
	} else {
		w.timer.Reset(schedule.SlowAfter)
	}
}

// fire lets another request take the place of a call that takes long, unless too many do.
func (w *watchdog) fire() {
	d := w.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.calling && d.ctx.Err() == nil && d.slow < maxReleased {
		d.busy--
		d.slow++
		w.released = true
		d.poke()
	}
}

// stop records that the call has returned. released does not change any more.
func (w *watchdog) stop() {
	w.fired = !w.timer.Stop()
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.calling = false
}
