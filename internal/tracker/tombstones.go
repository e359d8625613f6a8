package tracker

import (
	"math"
	"time"
)

// owner says whose Event has the base name of a key.
type owner uint8

const (
	ownerUnknown owner = iota
	ownerUs            // the Event has this key
	ownerOther         // it has another one, and must not be changed
)

// never is before all times.
const never = time.Duration(math.MinInt64)

// tombstone is what is known of the base name of a key.
type tombstone struct {
	until   time.Duration // when the Event that has the name expires
	version uint64        // its resourceVersion; zero if unknown
	owner   owner
	ended   bool // a series of this key has ended in this tracker
}

// tombstones remember for which keys the base name is taken on the server although
// the series has ended, and until when. They are bounded: when the newer half is
// full, or as old as the longest of them lasts, the older half is forgotten. To forget
// costs requests and nothing else: a create that the server refuses, and a look at the
// Event that has the name.
//
// Keys are known by their nameHash, for which nobody outside can make a collision.
type tombstones struct {
	limit    int           // of each half
	lifetime time.Duration // the longest time for which a name is taken
	since    time.Duration // when the newer half began
	new, old map[uint64]tombstone
}

func newTombstones(limit int, lifetime time.Duration) *tombstones {
	return &tombstones{limit: max(limit/2, 1), lifetime: lifetime, new: make(map[uint64]tombstone)}
}

// expire forgets the older half if each name in it is free at now.
func (c *tombstones) expire(now time.Duration) {
	if at, ok := c.expires(); ok && now >= at {
		c.rotate()
		c.since = now
	}
}

// expires returns when expire has something to forget. ok is false if there is nothing.
func (c *tombstones) expires() (at time.Duration, ok bool) {
	return c.since + c.lifetime, len(c.new)+len(c.old) > 0
}

func (c *tombstones) rotate() { c.new, c.old = make(map[uint64]tombstone), c.new }

// hold says that the base name of the key with this hash is taken until the given
// time, and by which version of whose Event, if that is known.
func (c *tombstones) hold(hash uint64, until time.Duration, by owner, version uint64) {
	n, ok := c.get(hash)
	if !ok || until > n.until {
		n.until = until
	}
	if by != ownerUnknown {
		n.owner, n.version = by, version
	}
	c.put(hash, n)
}

// belongs says which version of whose Event has the base name, if it is taken.
func (c *tombstones) belongs(hash uint64, to owner, version uint64) {
	if n, ok := c.get(hash); ok {
		n.owner, n.version = to, version
		c.put(hash, n)
	}
}

// release says that no Event has the base name.
func (c *tombstones) release(hash uint64) {
	if n, ok := c.get(hash); ok {
		n.until, n.owner, n.version = never, ownerUnknown, 0
		c.put(hash, n)
	}
}

// end says that a series of the key has ended.
func (c *tombstones) end(hash uint64) {
	n, ok := c.get(hash)
	if !ok {
		n.until = never
	}
	n.ended = true
	c.put(hash, n)
}

// taken reports whether the base name is taken at now.
func (c *tombstones) taken(hash uint64, now time.Duration) bool {
	n, ok := c.get(hash)
	return ok && now < n.until
}

// owner returns which version of whose Event has the base name at now, if known.
func (c *tombstones) owner(hash uint64, now time.Duration) (is owner, version uint64) {
	if n, ok := c.get(hash); ok && now < n.until {
		return n.owner, n.version
	}
	return ownerUnknown, 0
}

// ended reports whether a series of the key has ended in this tracker.
func (c *tombstones) ended(hash uint64) bool {
	n, _ := c.get(hash)
	return n.ended
}

func (c *tombstones) get(hash uint64) (n tombstone, ok bool) {
	if n, ok = c.new[hash]; !ok {
		n, ok = c.old[hash]
	}
	return n, ok
}

func (c *tombstones) put(hash uint64, n tombstone) {
	if _, ok := c.new[hash]; !ok && len(c.new) >= c.limit {
		c.rotate()
	}
	c.new[hash] = n
}
