package events

import (
	"hash/maphash"
	"sync"
)

// MaxDistinct is up to where Stats counts distinct reasons and actions.
const MaxDistinct = 1000

// distinct counts how many different words there have been, up to MaxDistinct. It
// keeps 8 bytes of each, so that it can be as exact as the limit is low. It may be
// used concurrently.
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
