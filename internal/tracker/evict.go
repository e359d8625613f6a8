package tracker

import (
	"container/heap"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	closingNormal // waiting for their last write
	closingWarning
	evictionClasses
)

// evictionClass returns the class of e. Tracker.mu is held.
func (t *Tracker) evictionClass(e *Entry) evictionClass {
	class := unevictable
	switch {
	case e.life == forgotten, e.life == closing && t.sched.InFlight(e):
		return unevictable
	case e.life == closing:
		class = closingNormal
	case e.spec.state == series.Ongoing:
		class = ongoingNormal
	case e.exists():
		class = writtenNormal
	case t.sched.InFlight(e):
		return unevictable
	default:
		class = unwrittenNormal
	}
	if e.isWarning() {
		class++
	}
	return class
}

// classify puts e into the list of its class. Tracker.mu is held.
func (t *Tracker) classify(e *Entry) {
	class := t.evictionClass(e)
	if class == e.class {
		return
	}
	if e.class != unevictable {
		heap.Remove(&t.lists[e.class], int(e.index))
	}
	e.class = class
	if class != unevictable {
		e.stamp = e.last()
		heap.Push(&t.lists[class], e)
	}
}

// ongoing returns the number of ongoing series. Tracker.mu is held.
func (t *Tracker) ongoing() int { return len(t.lists[ongoingNormal]) + len(t.lists[ongoingWarning]) }

// makeRoom evicts a series so that one with key k can begin, and reports whether it
// could. A Normal never evicts a Warning. Tracker.mu is held.
func (t *Tracker) makeRoom(k *series.Key, at time.Duration, drops *[]Drop) bool {
	// A series that is due to end loses nothing. Its deadline is not handled while
	// its write waits to be sent.
	for _, class := range []evictionClass{unwrittenNormal, unwrittenWarning, ongoingNormal, ongoingWarning} {
		if e := t.lists[class].longestIdle(); e != nil && at-e.last() >= t.opts.FinishAfter {
			t.end(e, series.Finished, at, drops)
			return true
		}
	}
	warning := k.Type == corev1.EventTypeWarning
	if e, ok := t.blocked(accepting, warning); ok {
		t.evict(e, at, drops)
		return true
	}
	classes := []evictionClass{writtenNormal, ongoingNormal}
	if warning {
		classes = []evictionClass{writtenNormal, writtenWarning, ongoingNormal, unwrittenNormal, ongoingWarning}
	}
	for _, class := range classes {
		if e := t.lists[class].longestIdle(); e != nil {
			t.evict(e, at, drops)
			return true
		}
	}
	return false
}

// evict ends an entry that accepts occurrences. Only one that the server does not
// know and that has occurred once is lost.
func (t *Tracker) evict(e *Entry, at time.Duration, drops *[]Drop) {
	if e.phase == unwritten && e.spec.state == series.Singleton {
		t.discard(e, DropDisplaced, drops)
		return
	}
	t.end(e, series.Unknown, at, drops)
}

// blocked returns an entry that a closed gate holds up, Normals first, and Warnings
// only if they are wanted.
func (t *Tracker) blocked(l life, warnings bool) (*Entry, bool) {
	e, ok := t.sched.Blocked(func(e *Entry) bool { return e.life == l && !e.isWarning() })
	if !ok && warnings {
		e, ok = t.sched.Blocked(func(e *Entry) bool { return e.life == l })
	}
	return e, ok
}

// boundClosing drops the longest idle entries that are closing if there are too
// many: Normals before Warnings, and those behind a closed gate before others.
// Tracker.mu is held.
func (t *Tracker) boundClosing(at time.Duration, drops *[]Drop) {
	for int(t.closing.Load()) > t.opts.Capacity {
		e, ok := t.blocked(closing, len(t.lists[closingNormal]) == 0)
		if !ok {
			e = t.lists[closingNormal].longestIdle()
		}
		if e == nil {
			e = t.lists[closingWarning].longestIdle()
		}
		if e == nil {
			return // the others are in flight
		}
		t.lose(e, DropClosingFull, drops)
	}
}

// idleList is a heap of entries, the longest idle first.
type idleList []*Entry

func (l idleList) Len() int           { return len(l) }
func (l idleList) Less(i, j int) bool { return l[i].stamp < l[j].stamp }
func (l idleList) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = int32(i), int32(j)
}

func (l *idleList) Push(x any) {
	e := x.(*Entry)
	e.index = int32(len(*l))
	*l = append(*l, e)
}

func (l *idleList) Pop() any {
	n := len(*l) - 1
	e := (*l)[n]
	(*l)[n] = nil
	*l = (*l)[:n]
	return e
}

// maxCorrections bounds how long longestIdle takes under the lock. A list of hot
// series would otherwise be corrected from end to end.
const maxCorrections = 32

// longestIdle returns the entry that has been idle longest, nil if there is none.
//
// Occurrences do not touch the list, because they take no lock. So a stamp can be
// out of date, but only too early: longestIdle corrects the first entry until its
// stamp is right. After maxCorrections it returns an entry that is at least older
// than those it has looked at.
func (l *idleList) longestIdle() *Entry {
	if len(*l) == 0 {
		return nil
	}
	for range maxCorrections {
		e := (*l)[0]
		at := e.last()
		if at == e.stamp {
			break
		}
		e.stamp = at
		heap.Fix(l, 0)
	}
	return (*l)[0]
}
