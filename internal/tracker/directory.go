package tracker

import (
	"sync"
	"sync/atomic"
)

// shardCount is a power of two. Two keys share a shard with a probability of one
// in this many.
const shardCount = 64

// directory finds entries by their keys. Tracker.mu must be held, except to find an entry
// in a shard.
type directory struct {
	seed      seed
	shards    [shardCount]shard // of entries that are accepting or resting
	accepting atomic.Int64      // the number of these
	closed    index             // those that are closing
}

type shard struct {
	mu      sync.Mutex // held while entries changes, for findWithNote
	entries index

	// Each occurrence changes taken. It has a cache line of its own, so that
	// those who look up entries keep the line that they read.
	_     [cacheLine]byte
	taken atomic.Uint64 // occurrences that arrived
	_     [cacheLine]byte
}

const cacheLine = 64

func (d *directory) shard(hash uint64) *shard { return &d.shards[hash%shardCount] }

// hashOf returns the fastHash of the key of e. It is computed when it is needed, which is
// for each write, to save eight bytes for each entry.
func (d *directory) hashOf(e *Entry) uint64 {
	k := e.Key()
	return fastHash(d.seed, &k)
}

func (d *directory) nameHashOf(e *Entry) uint64 {
	k := e.Key()
	return nameHash(d.seed, &k)
}

// another reports whether an entry of the key of e other than e matches.
func (d *directory) another(e *Entry, match func(*Entry) bool) bool {
	k := e.Key()
	hash := fastHash(d.seed, &k)
	if other := d.shard(hash).entries.find(hash, &k); other != nil && other != e && match(other) {
		return true
	}
	for other := range d.closed.with(hash) {
		if other != e && other.key.is(&k) && match(other) {
			return true
		}
	}
	return false
}

// tends reports whether another entry of the key of e has the Event with that name, or
// will have it.
func (d *directory) tends(e *Entry, name string) bool {
	return d.another(e, func(other *Entry) bool { return other.name() == name })
}
