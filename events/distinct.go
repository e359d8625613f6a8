package events

import (
	"hash/maphash"
	"sync"
)

// MaxDistinct is the limit of [Stats].DistinctReasons and [Stats].DistinctActions.
const MaxDistinct = 1000

// distinct counts different words, up to MaxDistinct. It stores an 8-byte hash per
// word. It is safe for concurrent use.
type distinct struct {
	mu   sync.Mutex
	seed maphash.Seed
	seen map[uint64]struct{} // hashes
}

func (d *distinct) add(word string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil {
		d.seed, d.seen = maphash.MakeSeed(), make(map[uint64]struct{})
	}
	if len(d.seen) < MaxDistinct {
		d.seen[maphash.String(d.seed, word)] = struct{}{}
	}
}

func (d *distinct) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen)
}
