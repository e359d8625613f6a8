package tracker

import (
	"time"

	"github.com/eventseries/eventseries/series"
)

// class groups entries by what their eviction loses. What a class that comes first has is evicted first.
type class uint8

const (
	classNone           class = iota // the tracker has forgotten it
	classOver                        // over
	classNormal                      // active
	classWarning                     // active
	classClosingNormal               // closing
	classClosingWarning              // closing
	classInFlight                    // closing, and in flight, so it cannot be dropped
	classes                          // the number of classes
)

func (t *table) classOf(e *Entry) class {
	switch {
	case e.life == over:
		return classOver
	case e.life == closing && t.sched.InFlight(e):
		return classInFlight
	case e.life == closing && e.isWarning():
		return classClosingWarning
	case e.life == closing:
		return classClosingNormal
	case e.isWarning():
		return classWarning
	default:
		return classNormal
	}
}

// classify puts e into the list of a class, which it is in already if that is its class.
func (t *table) classify(e *Entry, is class) {
	if e.class == is {
		return
	}
	if list := t.lists[e.class]; e.class != classNone {
		last := list[len(list)-1]
		list[e.index], last.index = last, e.index
		list[len(list)-1] = nil
		t.lists[e.class] = list[:len(list)-1]
	}
	if e.class = is; is != classNone {
		e.index = int32(len(t.lists[is]))
		t.lists[is] = append(t.lists[is], e)
	}
}

// sample is the number of entries among which a victim is chosen. With one more loop than the table has room
// for, a round of all loops costs the requests of some of them. If the longest idle one made room, each occurrence
// would evict the series that recurs next.
const sample = 3

// victim returns the entry to evict of the first class that has any: one that fails, or the longest idle, of a sample. It
// returns nil if the classes have none.
func (t *table) victim(classes ...class) (victim *Entry) {
	for _, c := range classes {
		list := t.lists[c]
		for range min(sample, len(list)) {
			e := list[t.random.IntN(len(list))]
			if victim == nil || e.goesBefore(victim) {
				victim = e
			}
		}
		if victim != nil {
			break
		}
	}
	return victim
}

// goesBefore reports whether e is evicted before another entry of its class.
func (e *Entry) goesBefore(other *Entry) bool {
	if fails := e.slot.Failures() > 0; fails != (other.slot.Failures() > 0) {
		return fails
	}
	return e.last < other.last
}

// makeRoom evicts entries until there are no more than Options.Capacity. A Normal evicts no Warning that is not over: if there
// are only Warnings, it is evicted itself. Then makeRoom drops entries that are closing and not in flight, until there are no
// more than Options.Capacity of these.
func (t *table) makeRoom(now time.Time) {
	for len(t.lists[classOver])+len(t.lists[classNormal])+len(t.lists[classWarning]) > t.opts.Capacity {
		t.evict(t.victim(classOver, classNormal, classWarning), now)
	}
	for len(t.lists[classClosingNormal])+len(t.lists[classClosingWarning]) > t.opts.Capacity {
		t.drop(t.victim(classClosingNormal, classClosingWarning), DropTableFull, now)
	}
}

// evict makes e closing, unless its Event contains all of it.
func (t *table) evict(e *Entry, now time.Time) {
	t.update(e, now, func(*step) {
		e.finish(series.Unknown)
		e.life = closing
	})
}
