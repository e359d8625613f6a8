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
// need not ask, because each Ongoing series is accepted.
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
	switch {
	case e.hasNoEvent() && !t.sched.InFlight(e): // otherwise start does it, unless this request succeeds
		t.drop(e, DropFiltered, now)
	case e.isOngoing():
		t.take(e, now, func(*step) { e.finish(series.Finished) })
	}
}
