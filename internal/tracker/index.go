package tracker

import (
	"iter"
	"sync/atomic"

	"github.com/eventseries/eventseries/series"
)

// index finds entries by the hashes of their keys, of which several can be the same.
// The zero value is empty. Changes, and all methods but find, need a lock.
//
// It is a hash table with open addressing: a lookup reads one place in memory where a
// map of Go's reads three, and that is what it takes when there are too many series
// for the caches. With a million that occur in turn, an occurrence takes 400 ns and
// not 480. It can be searched while it is changed, as a map cannot, and it shrinks
// again when a flood is over.
type index struct {
	slots atomic.Pointer[slots] // nil if it is empty
	n     int                   // how many are taken, at most three in four
}

// slots are a power of two.
type slots []slot

type slot struct {
	hash  atomic.Uint64
	entry atomic.Pointer[Entry]
}

// minSlots is how many slots there are if there are any.
const minSlots = 8

// home is where the search for a hash begins. The bits below say which shard it is,
// and are the same in all of an index.
func (s slots) home(hash uint64) int { return int(hash/shardCount) & (len(s) - 1) }

func (s slots) next(i int) int { return (i + 1) & (len(s) - 1) }

// table returns the slots, of which there may be none.
func (x *index) table() slots {
	if s := x.slots.Load(); s != nil {
		return *s
	}
	return nil
}

// find returns an entry with key k, nil if there is none.
//
// It may be called while the index is changed. It may miss an entry then which is
// just being moved, and find one which is just being taken out.
func (x *index) find(hash uint64, k *series.Key) *Entry {
	s := x.table()
	if len(s) == 0 {
		return nil
	}
	i := s.home(hash)
	for range s { // changes could lead it round and round otherwise
		e := s[i].entry.Load()
		if e == nil {
			return nil
		}
		// Should the hash be that of another entry already, the key tells.
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

// insert adds e, which must not be there yet.
func (x *index) insert(e *Entry) {
	if s := x.table(); 4*(x.n+1) > 3*len(s) {
		x.resize(max(2*len(s), minSlots))
	}
	x.table().put(e.hash, e)
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

// remove takes e out, which must be there.
func (x *index) remove(e *Entry) {
	s := x.table()
	gap := s.home(e.hash)
	for s[gap].entry.Load() != e {
		gap = s.next(gap)
	}
	// What comes after it is moved up, so that a search does not end at the gap. It
	// must not come before its own home by that.
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
