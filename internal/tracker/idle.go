package tracker

import (
	"container/heap"
	"time"
)

// place is one of the lists that hold entries in the order in which they have
// been idle, so that room can be made in the order that the table promises.
type place uint8

const (
	nowhere        place = iota
	placeUnwritten       // singletons of type Normal that are not on the server
	placeWritten         // singletons that are
	placeOngoing
	placeClosingNormal // ended, waiting for their last write
	placeClosingWarning
	places
)

// idleList is a heap of entries, the longest idle first, each of which knows
// its index.
type idleList []*Entry

func (l idleList) Len() int           { return len(l) }
func (l idleList) Less(i, j int) bool { return l[i].stamp < l[j].stamp }
func (l idleList) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].pos, l[j].pos = int32(i), int32(j)
}

func (l *idleList) Push(x any) {
	e := x.(*Entry)
	e.pos = int32(len(*l))
	*l = append(*l, e)
}

func (l *idleList) Pop() any {
	n := len(*l) - 1
	e := (*l)[n]
	(*l)[n] = nil
	*l = (*l)[:n]
	return e
}

func (l *idleList) insert(e *Entry, stamp time.Duration) {
	e.stamp = stamp
	heap.Push(l, e)
}

func (l *idleList) remove(e *Entry) { heap.Remove(l, int(e.pos)) }

// longestIdle returns the entry that has been idle longest, nil if there is
// none. last returns the time of an entry's latest occurrence.
//
// Occurrences do not touch the list, as they must not wait for its lock. So a
// stamp may be out of date, but only ever too early: the first entry is put
// right until its stamp is. Each occurrence causes one such correction at most,
// and a call makes one for each entry at most: entries in a hot loop are out of
// date again at once, and the table is locked here.
func (l *idleList) longestIdle(last func(*Entry) time.Duration) *Entry {
	if len(*l) == 0 {
		return nil
	}
	for range len(*l) {
		e := (*l)[0]
		at := last(e)
		if at == e.stamp {
			break
		}
		e.stamp = at
		heap.Fix(l, 0)
	}
	return (*l)[0]
}
