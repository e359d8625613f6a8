package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// accepts reports whether occurrences of k are recorded. A pointer in place of the copy
// would put the key of each occurrence on the heap.
func (r *rules) accepts(k *series.Key) bool { return r.opts.Accepts == nil || r.opts.Accepts(*k) }

// Refilter carries out a change of what Options.Accepts accepts. What it excludes and no
// Event contains is not written; Refilter returns it as DropFiltered. The other Ongoing
// series that it excludes are over: their last write says Finished, with their exact counts.
//
// An occurrence that was accepted before the change is tracked when Refilter looks at its
// series, and one that comes later is not: Observe asks Accepts under the lock. So Count
// need not ask, because each open counter is that of a series that is accepted.
func (t *Tracker) Refilter(now time.Time) (drops []Drop) {
	t.inParts(func(e *Entry) {
		if k := e.Key(); !t.accepts(&k) {
			t.exclude(e, now)
			drops = append(drops, t.dropped()...)
		}
	})
	return drops
}

func (t *table) exclude(e *Entry, now time.Time) {
	e.drain()
	at := t.offset(now)
	switch {
	case e.isUnknown() && !t.sched.InFlight(e): // otherwise start does it, unless this request succeeds
		t.lose(e, DropFiltered)
	case e.life != accepting || e.spec.state != series.Ongoing:
		// It is over, or its Event says all that it ever will.
	case e.isTheirs(&t.rules, at):
		t.end(e, series.Ongoing, now)
	case e.phase == refused:
		t.end(e, series.Unknown, now)
	default:
		e.rest() // it continues if it is accepted again soon
		t.place(e, at)
	}
}

// isUnknown reports whether no Event contains e, as far as is known. If an Event of a series
// may be Ongoing because a response was lost, it is not: that Event must be finished.
func (e *Entry) isUnknown() bool {
	return e.spec.state == series.Singleton && !e.exists() || e.phase == unwritten && !e.hasExisted() && !e.hasAttempts()
}
