package tracker

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/series"
)

// class groups entries by what their eviction loses. Each class has a list, whose first is evicted first.
type class uint8

const (
	classNone     class = iota // the tracker has forgotten it
	classOver                  // over
	classNormal                // active
	classWarning               // active
	classClosing               // closing
	classInFlight              // closing, and in flight, so it cannot be dropped
	classes                    // the number of classes
)

func (t *table) classOf(e *Entry) class {
	switch {
	case e.life == over:
		return classOver
	case e.life == closing && t.sched.InFlight(e):
		return classInFlight
	case e.life == closing:
		return classClosing
	case e.isWarning():
		return classWarning
	default:
		return classNormal
	}
}

// rank is a distance in the order of eviction that no idle time bridges.
const rank = 50 * series.MaxDuration

// order returns the place of e in its list: the longest idle first, what the server denies
// or fails before them, and of those that are closing Normals before all Warnings.
func (t *table) order(e *Entry) time.Duration {
	at := max(e.last, -series.MaxDuration)
	if e.slot.Failures > 0 {
		at -= rank
	}
	if e.life == closing && !e.isWarning() {
		at -= 2 * rank
	}
	return at
}

// classify puts e into the list of its class.
func (t *table) classify(e *Entry) {
	is := t.classOf(e)
	if e.class != is && e.class != classNone {
		t.lists[e.class].Remove(e)
	}
	e.class = is
	t.lists[is].Put(e, t.order(e))
}

// makeRoom evicts entries after an occurrence of k, until there are no more than Options.Capacity.
// A Normal evicts no Warning that is not over: if there are only Warnings, it is evicted itself.
func (t *table) makeRoom(k *series.Key, now time.Time) {
	for t.lists[classOver].Len()+t.lists[classNormal].Len()+t.lists[classWarning].Len() > t.opts.Capacity {
		t.evict(t.victim(k.Type == corev1.EventTypeWarning), now)
	}
	t.bound(now)
}

// bound drops entries that are closing and not in flight, until there are no more than Options.Capacity.
func (t *table) bound(now time.Time) {
	for t.lists[classClosing].Len() > t.opts.Capacity {
		t.drop(t.lists[classClosing].First(), DropTableFull, now)
	}
}

// victim returns the entry to evict: one that is over, one that the server denies or fails,
// or the longest idle one, and Normals before Warnings.
func (t *table) victim(forWarning bool) *Entry {
	if e := t.longestIdle(classOver); e != nil {
		return e
	}
	n, w := t.longestIdle(classNormal), t.longestIdle(classWarning)
	if n == nil || forWarning && w != nil && w.slot.Failures > 0 && n.slot.Failures == 0 {
		return w
	}
	return n
}

// evict makes e closing, unless its Event contains all of it.
func (t *table) evict(e *Entry, now time.Time) {
	t.take(e, now, func(*step) {
		e.finish(series.Unknown)
		e.life = closing
	})
}

// longestIdle returns the entry of a class that has been idle longest, nil if there is none. The
// hot path does not touch the list, so a time can be out of date, but only too early. longestIdle
// corrects the first entry until its time is right, or batch times.
func (t *table) longestIdle(of class) *Entry {
	list := &t.lists[of]
	if list.Len() == 0 {
		return nil
	}
	for range batch {
		e := list.First()
		at := t.order(e)
		if at == list.At(e) {
			break
		}
		list.Put(e, at)
	}
	return list.First()
}
