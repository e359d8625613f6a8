package tracker

import (
	"math"
	"time"
)

// owner says whose Event has the base name of a key. The zero value is that
// nobody knows.
type owner uint8

const (
	ownerUnknown owner = iota
	ownerUs            // it is of this key
	ownerOther         // it is not, and must not be changed
)

// never is before all times.
const never = time.Duration(math.MinInt64)

// closedName is what is known of the base name of a key.
type closedName struct {
	until time.Duration // so long an Event has it
	owner owner
	ended bool // a series of this key has ended in this table
}

// closedNames remembers for which keys an Event with the base name stands on the
// server although its series has ended, and until when. It is bounded: it
// forgets the older half when the newer half is full. Forgetting costs nothing
// but requests: a create that the server refuses, and looks at what stands
// there.
//
// Keys are known by their nameHash, which nobody can make clash from outside.
type closedNames struct {
	limit    int // of each half
	new, old map[uint64]closedName
}

func newClosedNames(limit int) *closedNames {
	return &closedNames{limit: max(limit/2, 1), new: make(map[uint64]closedName)}
}

// hold says that the base name of the key with this hash is taken until then,
// and by whom, if that is known.
func (c *closedNames) hold(hash uint64, until time.Duration, by owner) {
	n, ok := c.get(hash)
	if !ok || until > n.until {
		n.until = until
	}
	if by != ownerUnknown {
		n.owner = by
	}
	c.put(hash, n)
}

// belongs says by whom the base name is taken, if it is.
func (c *closedNames) belongs(hash uint64, to owner) {
	if n, ok := c.get(hash); ok {
		n.owner = to
		c.put(hash, n)
	}
}

// release says that nothing has the base name.
func (c *closedNames) release(hash uint64) {
	if n, ok := c.get(hash); ok {
		n.until, n.owner = never, ownerUnknown
		c.put(hash, n)
	}
}

// end says that a series of the key has ended.
func (c *closedNames) end(hash uint64) {
	n, ok := c.get(hash)
	if !ok {
		n.until = never
	}
	n.ended = true
	c.put(hash, n)
}

// taken reports whether the base name is taken at now.
func (c *closedNames) taken(hash uint64, now time.Duration) bool {
	n, ok := c.get(hash)
	return ok && now < n.until
}

// owner returns who has the base name at now, as far as is known.
func (c *closedNames) owner(hash uint64, now time.Duration) owner {
	if n, ok := c.get(hash); ok && now < n.until {
		return n.owner
	}
	return ownerUnknown
}

// ended reports whether a series of the key has ended in this table.
func (c *closedNames) ended(hash uint64) bool {
	n, _ := c.get(hash)
	return n.ended
}

func (c *closedNames) get(hash uint64) (n closedName, ok bool) {
	if n, ok = c.new[hash]; !ok {
		n, ok = c.old[hash]
	}
	return n, ok
}

func (c *closedNames) put(hash uint64, n closedName) {
	if _, ok := c.new[hash]; !ok && len(c.new) >= c.limit {
		c.new, c.old = make(map[uint64]closedName), c.new
	}
	c.new[hash] = n
}
