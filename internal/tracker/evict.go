package tracker

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/eventseries/eventseries/heartbeat"
	"github.com/eventseries/eventseries/series"
)

// evictionClass groups entries by what their eviction loses.
type evictionClass uint8

const (
	unevictable      evictionClass = iota
	unwrittenNormal                // singletons that the server does not know
	unwrittenWarning               // the same; evicted only if they are quiet
	writtenNormal                  // singletons that the server knows
	writtenWarning
	ongoingNormal
	ongoingWarning
	ended        // over, and the server knows all
	endingNormal // over, with something to write
	endingWarning
	closingNormal // waiting for their last write
	closingWarning
	evictionClasses
)

// classes hold the entries of each class, the longest idle first.
type classes [evictionClasses]heartbeat.Queue[*Entry]

// evictionClass returns the class of e. inFlight reports whether a request for it is in
// flight.
func (e *Entry) evictionClass(inFlight bool) evictionClass {
	var class evictionClass
	switch {
	case e.life == forgotten, e.listing() != nil, e.life == closing && inFlight:
		return unevictable
	case e.life == resting && e.need() == none:
		return ended
	case e.life == resting:
		class = endingNormal
	case e.life == closing:
		class = closingNormal
	case e.spec.state == series.Ongoing:
		class = ongoingNormal
	case e.exists():
		class = writtenNormal
	case inFlight:
		return unevictable
	default:
		class = unwrittenNormal
	}
	if e.isWarning() {
		class++
	}
	return class
}

func (t *table) classify(e *Entry) {
	class := e.evictionClass(t.sched.InFlight(e))
	if class == e.class {
		return
	}
	if e.class != unevictable {
		t.lists[e.class].Remove(e)
	}
	e.class = class
	if class != unevictable {
		t.lists[class].Add(e, e.last())
	}
}

// ended returns the number of series that are over, and keep their places.
func (c *classes) ended() int {
	return c[ended].Len() + c[endingNormal].Len() + c[endingWarning].Len()
}

// ongoing returns the number of ongoing series.
func (c *classes) ongoing() int { return c[ongoingNormal].Len() + c[ongoingWarning].Len() }

// makeRoom evicts a series so that one with key k can begin, and reports whether it
// could. A Normal never evicts a Warning.
func (t *table) makeRoom(k *series.Key, now time.Time) bool {
	at := t.offset(now)
	// A series that is over loses nothing. Its deadline is not handled while
	// its write waits to be sent. But its end can push out another Warning.
	warning := k.Type == corev1.EventTypeWarning
	full := t.lists.waitingToClose() >= t.opts.Capacity && t.lists[closingNormal].Len() == 0
	for _, class := range []evictionClass{
		ended, endingNormal, endingWarning, writtenNormal, writtenWarning,
		unwrittenNormal, unwrittenWarning, ongoingNormal, ongoingWarning,
	} {
		e := t.lists.longestIdle(class)
		if e == nil || e.life == accepting && !e.isQuiet(&t.rules, at) || class != ended && full && !warning && e.isWarning() {
			continue
		}
		t.end(e, series.Finished, now)
		return true
	}
	e, ok := t.blocked(false, warning)
	classes := []evictionClass{writtenNormal, ongoingNormal}
	if warning {
		classes = []evictionClass{writtenNormal, writtenWarning, ongoingNormal, unwrittenNormal, ongoingWarning}
	}
	for i := 0; !ok && i < len(classes); i++ {
		e = t.lists.longestIdle(classes[i])
		ok = e != nil
	}
	switch {
	case !ok:
		return false
	case e.phase == unwritten && e.spec.state == series.Singleton:
		t.lose(e, DropDisplaced) // the server does not know it, and it has occurred once
	default:
		t.end(e, series.Unknown, now)
	}
	return true
}

// maxHeld bounds in how many entries of a class an eviction looks for one that a closed
// gate holds up: it takes microseconds under the lock.
const maxHeld = 1000

// blocked returns an entry that a closed gate holds up, Normals first, and Warnings only if
// they are wanted. What the server has denied or failed goes before what was never sent.
func (t *table) blocked(isClosing, warnings bool) (*Entry, bool) {
	if !t.sched.HasClosedGates() {
		return nil, false
	}
	for _, warning := range []bool{false, true} {
		if warning && !warnings {
			break
		}
		classes := []evictionClass{ongoingNormal, unwrittenNormal, closingNormal}
		if warning {
			classes = []evictionClass{unwrittenWarning, ongoingWarning, closingWarning}
		}
		matches := func(e *Entry) bool {
			return e.listing() == nil && (e.life == closing) == isClosing && e.isWarning() == warning
		}
		var untried *Entry
		for _, class := range classes {
			if e, ok := t.lists[class].Find(maxHeld, func(e *Entry) bool {
				if !matches(e) || !t.sched.Held(e) {
					return false
				}
				if untried == nil && !e.Tried() {
					untried = e
				}
				return e.Tried()
			}); ok {
				return e, true
			}
		}
		// The schedule looks at a few entries, which can all be of the other type.
		if e, ok := t.sched.Blocked(matches); ok {
			return e, true
		}
		if untried != nil {
			return untried, true
		}
	}
	return nil, false
}

// boundClosing drops the longest idle entries that are closing if there are too
// many: Normals before Warnings, and those behind a closed gate before others.
func (t *table) boundClosing() {
	for t.lists.waitingToClose() > t.opts.Capacity {
		e, ok := t.blocked(true, t.lists[closingNormal].Len() == 0)
		if !ok {
			e = t.lists.longestIdle(closingNormal)
		}
		if e == nil {
			e = t.lists.longestIdle(closingWarning)
		}
		t.lose(e, DropClosingFull)
	}
}

// waitingToClose returns the number of entries that are closing, without those in flight:
// one that is in flight must not push out another that waits, and may be more important.
func (c *classes) waitingToClose() int {
	return c[closingNormal].Len() + c[closingWarning].Len()
}

// maxCorrections bounds how long longestIdle takes under the lock. A list of hot
// series would otherwise be corrected from end to end.
const maxCorrections = 32

// longestIdle returns the entry of a class that has been idle longest, nil if there is
// none.
//
// Occurrences do not touch the list, because they take no lock. So a time can be
// out of date, but only too early: longestIdle corrects the first entry until its
// time is right, or until it has looked at maxCorrections entries.
func (c *classes) longestIdle(class evictionClass) *Entry {
	list := &c[class]
	if list.Len() == 0 {
		return nil
	}
	for range maxCorrections {
		e := list.First()
		at := e.last()
		if at == list.At(e) {
			break
		}
		list.Move(e, at)
	}
	return list.First()
}
