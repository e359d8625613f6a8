package tracker

import (
	"iter"
	"sync/atomic"

	"github.com/eventseries/eventseries/series"
)

// index finds entries by the hashes of their keys. Several can have the same hash.
// The zero value is empty. Changes, and all methods except find, need a lock.
//
// It is a hash table with open addressing. A lookup reads one place in memory
// where a map of Go reads three, which matters if the series do not fit into the
// caches. Unlike a map, it can be searched without a lock while it changes, and it shrinks.
// The package documentation says what a lock costs.
type index struct {
	slots atomic.Pointer[slots] // nil if it is empty
	n     int                   // how many are used, at most four in five
}

// slots has a length that is a power of two.
type slots []slot

type slot struct {
	hash  atomic.Uint64
	entry atomic.Pointer[Entry]
}

// minSlots is the smallest length of slots.
const minSlots = 8

// home returns where the search for a hash begins. The bits below select the
// shard, and are the same in a whole index.
func (s slots) home(hash uint64) int { return int(hash/shardCount) & (len(s) - 1) }

func (s slots) next(i int) int { return (i + 1) & (len(s) - 1) }

// table returns the slots; there may be none.
func (x *index) table() slots {
	if s := x.slots.Load(); s != nil {
		return *s
	}
	return nil
}

// find returns an entry with key k, nil if there is none.
//
// It can be called while the index changes. Then it can miss an entry that is
// being moved, and find one that is being removed.
func (x *index) find(hash uint64, k *series.Key) *Entry {
	s := x.table()
	if len(s) == 0 {
		return nil
	}
	i := s.home(hash)
	for range s { // bounded, because changes could make it go round
		e := s[i].entry.Load()
		if e == nil {
			return nil
		}
		// If the hash is already that of another entry, the key differs.
		if s[i].hash.Load() == hash && e.key.is(k) {
			return e
		}
		i = s.next(i)
	}
	return nil
}

// with returns the entries with this hash.
func (x *index) with(hash uint64) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if x.n == 0 {
			return
		}
		s := x.table()
		for i := s.home(hash); s[i].entry.Load() != nil; i = s.next(i) {
			if s[i].hash.Load() == hash && !yield(s[i].entry.Load()) {
				return
			}
		}
	}
}

// all returns all entries.
func (x *index) all() []*Entry {
	all := make([]*Entry, 0, x.n)
	s := x.table()
	for i := range s {
		if e := s[i].entry.Load(); e != nil {
			all = append(all, e)
		}
	}
	return all
}

// insert adds e, which must not be in the index, under the hash of its key.
func (x *index) insert(hash uint64, e *Entry) {
	if s := x.table(); 5*(x.n+1) > 4*len(s) {
		x.resize(max(2*len(s), minSlots))
	}
	x.table().put(hash, e)
	x.n++
}

func (s slots) put(hash uint64, e *Entry) {
	i := s.home(hash)
	for s[i].entry.Load() != nil {
		i = s.next(i)
	}
	s[i].set(hash, e)
}

func (s *slot) set(hash uint64, e *Entry) {
	s.hash.Store(hash)
	s.entry.Store(e)
}

// remove removes e, which is in the index under this hash or not at all.
func (x *index) remove(hash uint64, e *Entry) {
	s := x.table()
	if len(s) == 0 {
		return
	}
	gap := s.home(hash)
	for ; s[gap].entry.Load() != e; gap = s.next(gap) {
		if s[gap].entry.Load() == nil {
			return
		}
	}
	// Move up what follows, so that a search does not end at the gap. No entry may
	// move before its home.
	for i := s.next(gap); ; i = s.next(i) {
		e := s[i].entry.Load()
		if e == nil {
			break
		}
		hash := s[i].hash.Load()
		if home := s.home(hash); (i-home)&(len(s)-1) >= (i-gap)&(len(s)-1) {
			s[gap].set(hash, e)
			gap = i
		}
	}
	s[gap].entry.Store(nil)
	x.n--
	switch {
	case x.n == 0:
		x.slots.Store(nil)
	case len(s) > minSlots && 8*x.n < len(s):
		x.resize(len(s) / 2)
	}
}

func (x *index) resize(n int) {
	resized := make(slots, n)
	old := x.table()
	for i := range old {
		if e := old[i].entry.Load(); e != nil {
			resized.put(old[i].hash.Load(), e)
		}
	}
	x.slots.Store(&resized)
}
