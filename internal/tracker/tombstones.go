package tracker

import "time"

// owner says whether the Event with the base name of a key has that key.
type owner uint8

const (
	ownerUnknown owner = iota
	ownerUs            // the Event has this key
	ownerOther         // it has another one, and must not be changed
)

// tombstone is what is known of the base name of a key. The zero value says that nothing
// is known.
type tombstone struct {
	until   time.Duration // when the Event that has the name expires
	version uint64        // its resourceVersion; zero if unknown
	owner   owner
	held    bool          // until is valid
	ended   bool          // a series of this key has ended in this tracker
	last    time.Duration // if ended: when its latest occurrence was
}

// hold says that the name is taken at least until the given time, which Event holds it,
// and its version, if they are known.
func (n *tombstone) hold(until time.Duration, by owner, version uint64) {
	if !n.held || until > n.until {
		n.until, n.held = until, true
	}
	if by != ownerUnknown {
		n.owner, n.version = by, version
	}
}

// belongs says which Event holds the name, if it is taken, and its version.
func (n *tombstone) belongs(to owner, version uint64) {
	if n.held {
		n.owner, n.version = to, version
	}
}

// release says that no Event has the name.
func (n *tombstone) release() { *n = tombstone{ended: n.ended, last: n.last} }

func (n *tombstone) takenAt(now time.Duration) bool { return n.held && now < n.until }

// ownerAt returns which Event holds the name at now, and its version, if they are known.
func (n *tombstone) ownerAt(now time.Duration) (is owner, version uint64) {
	if n.takenAt(now) {
		return n.owner, n.version
	}
	return ownerUnknown, 0
}

// tombstones remember for which keys the base name is taken on the server, also if the
// table has no series of the key, and until when. They are bounded: when the newer half is
// full, or as old as the longest of them lasts, the older half is forgotten. To forget
// costs requests and nothing else: a create that the server refuses, and a look at the
// Event that has the name.
//
// Keys are known by their nameHash. Its seed is random, so nobody can prepare collisions.
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

func (c *tombstones) get(hash uint64) tombstone {
	n, ok := c.new[hash]
	if !ok {
		n = c.old[hash]
	}
	return n
}

func (c *tombstones) put(hash uint64, n tombstone) {
	if _, ok := c.new[hash]; !ok && len(c.new) >= c.limit {
		c.rotate()
	}
	c.new[hash] = n
}
