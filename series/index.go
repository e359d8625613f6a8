package series

import "iter"

// index finds entries by the hashes of their keys, of which several can be the same.
// The zero value is empty.
//
// It is a hash table with open addressing: a lookup reads one place in memory where a
// map of Go's reads three, and that is what it takes when there are too many series
// for the caches. With a million that occur in turn, an occurrence takes 400 ns and
// not 480. And it shrinks again when a flood is over, as a map does not.
type index struct {
	slots []slot // a power of two of them, or none
	n     int    // how many are taken, at most three in four
}

type slot struct {
	hash  uint64
	entry *Entry
}

// minSlots is how many slots there are if there are any.
const minSlots = 8

// home is where the search for a hash begins. The bits below say which shard it is,
// and are the same in all of an index.
func (x *index) home(hash uint64) int { return int(hash/shardCount) & (len(x.slots) - 1) }

func (x *index) next(i int) int { return (i + 1) & (len(x.slots) - 1) }

// find returns an entry with key k, nil if there is none.
func (x *index) find(hash uint64, k *Key) *Entry {
	if x.n == 0 {
		return nil
	}
	for i := x.home(hash); ; i = x.next(i) {
		s := &x.slots[i]
		if s.entry == nil {
			return nil
		}
		if s.hash == hash && s.entry.key.is(k) {
			return s.entry
		}
	}
}

// with returns the entries with this hash.
func (x *index) with(hash uint64) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		if x.n == 0 {
			return
		}
		for i := x.home(hash); x.slots[i].entry != nil; i = x.next(i) {
			if x.slots[i].hash == hash && !yield(x.slots[i].entry) {
				return
			}
		}
	}
}

// all returns all entries.
func (x *index) all() []*Entry {
	all := make([]*Entry, 0, x.n)
	for i := range x.slots {
		if e := x.slots[i].entry; e != nil {
			all = append(all, e)
		}
	}
	return all
}

// insert adds e, which must not be there yet.
func (x *index) insert(e *Entry) {
	if 4*(x.n+1) > 3*len(x.slots) {
		x.resize(max(2*len(x.slots), minSlots))
	}
	x.put(slot{e.hash, e})
	x.n++
}

func (x *index) put(s slot) {
	i := x.home(s.hash)
	for x.slots[i].entry != nil {
		i = x.next(i)
	}
	x.slots[i] = s
}

// remove takes e out, which must be there.
func (x *index) remove(e *Entry) {
	gap := x.home(e.hash)
	for x.slots[gap].entry != e {
		gap = x.next(gap)
	}
	// What comes after it is moved up, so that a search does not end at the gap. It
	// must not come before its own home by that.
	for i := x.next(gap); x.slots[i].entry != nil; i = x.next(i) {
		home := x.home(x.slots[i].hash)
		if (i-home)&(len(x.slots)-1) >= (i-gap)&(len(x.slots)-1) {
			x.slots[gap], gap = x.slots[i], i
		}
	}
	x.slots[gap] = slot{}
	x.n--
	switch {
	case x.n == 0:
		x.slots = nil
	case len(x.slots) > minSlots && 8*x.n < len(x.slots):
		x.resize(len(x.slots) / 2)
	}
}

func (x *index) resize(slots int) {
	old := x.slots
	x.slots = make([]slot, slots)
	for _, s := range old {
		if s.entry != nil {
			x.put(s)
		}
	}
}
