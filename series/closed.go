package series

import "time"

// closedNames remembers for which keys an Event with the base name stands on the
// server although its series has ended, and until when. It is bounded: it
// forgets the older half when the newer half is full. Forgetting costs nothing
// but a create that the server refuses.
//
// Keys are known by their hash. Two that share one cost a longer name.
type closedNames struct {
	limit    int // of each half
	new, old map[uint64]time.Duration
}

func newClosedNames(limit int) *closedNames {
	return &closedNames{limit: max(limit/2, 1), new: make(map[uint64]time.Duration)}
}

// add says that the base name of the key with this hash is taken until then.
func (c *closedNames) add(hash uint64, until time.Duration) {
	if before, ok := c.until(hash); ok {
		until = max(until, before)
	}
	if _, ok := c.new[hash]; !ok && len(c.new) >= c.limit {
		c.new, c.old = make(map[uint64]time.Duration), c.new
	}
	c.new[hash] = until
}

// taken reports whether the base name is taken at now.
func (c *closedNames) taken(hash uint64, now time.Duration) bool {
	until, ok := c.until(hash)
	return ok && now < until
}

func (c *closedNames) until(hash uint64) (until time.Duration, ok bool) {
	if until, ok = c.new[hash]; !ok {
		until, ok = c.old[hash]
	}
	return until, ok
}
