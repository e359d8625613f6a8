package events

import (
	"sync"
	"time"
)

// overdueGrace is how long a sink may take to return when the time of its request
// is over.
const overdueGrace = time.Second

// A call of a sink that ignores its context can take for ever. Nobody can end it,
// and its series has to wait for it: what it does late must not come after what
// was written since. But nothing else has to wait. When a call is overdue, its
// pass is given back, so that a pause can end without it, and another worker
// takes the place of the one that made it. As many workers as there are can be
// replaced at a time; that bounds the goroutines and what is asked of a server
// that may be overwhelmed.

// overdue is one call of the sink, as long as it may become that.
type overdue struct {
	w      *writer
	pass   *pass
	worker bool // it is a worker that makes the call
	timer  *time.Timer
	begun  time.Time

	mu       sync.Mutex
	returned bool
	replaced bool
	expired  bool
	logged   bool
}

// watch watches over a call that is made next. worker says whether it is a worker
// that makes it, and can be replaced.
func (w *writer) watch(p *pass, worker bool) *overdue {
	o := &overdue{w: w, pass: p, worker: worker, begun: w.b.clock.Now()}
	// Real time, like the context of the request.
	o.timer = time.AfterFunc(w.b.opts.RequestTimeout+overdueGrace, o.expire)
	return o
}

// expire is called when the call should have returned.
func (o *overdue) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.w
	if o.returned || w.ctx.Err() != nil {
		return
	}
	w.b.gate.leave(*o.pass, true, verdict{outcome: troubled})
	o.pass.probe = false // or else it would be given back twice
	o.expired = true
	calls := w.overdue.Add(1)
	suppressed, ok := w.b.logLimit.allow("overdue", w.b.clock.Now())
	o.logged = ok
	if o.worker {
		o.replaced = w.replaced.Add(1) <= int64(w.b.opts.Workers)
		if !o.replaced {
			w.replaced.Add(-1)
		}
	}
	if !o.replaced && !o.logged {
		return
	}
	replaced := o.replaced
	// Whoever makes the call is one of these goroutines, so nobody has seen the end of
	// them.
	w.goroutines.Go(func() {
		if ok {
			w.b.logger().Error(nil, "A call of the sink does not return, although its context has ended", "since", o.begun,
				"calls", calls, "workersReplaced", w.replaced.Load(), "waiting", w.b.waitingSeries(), "suppressed", suppressed)
		}
		if replaced {
			w.work()
		}
	})
}

// end says that the call has returned. It reports whether the worker that made it
// has been replaced.
func (o *overdue) end() (replaced bool) {
	o.timer.Stop()
	o.mu.Lock()
	o.returned = true
	expired := o.expired
	replaced, logged := o.replaced, o.logged
	o.mu.Unlock()
	if replaced {
		o.w.replaced.Add(-1)
	}
	if expired {
		calls := o.w.overdue.Add(-1)
		if logged {
			o.w.b.logger().Info("A call of the sink has returned after all", "after", o.w.b.clock.Since(o.begun), "calls", calls)
		}
	}
	return replaced
}
