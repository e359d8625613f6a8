package heartbeat

import "time"

// Gate names what a request must pass: the server decides for each namespace and
// verb whether it permits and can handle a request.
type Gate struct{ Namespace, Verb string }

// The delays for which a gate stays closed double from the first to the last
// with each request that fails.
const (
	pauseFirst = 5 * time.Second // the gate of the server
	pauseMax   = 5 * time.Minute
	retryFirst = time.Second // the gate of a namespace, and each item
	retryMax   = 2 * time.Minute

	retryHurried = 100 * time.Millisecond // in a shutdown
)

// gateKept is for how long the gate of a namespace stays closed after its time is
// over if no item asks to pass. It exceeds all delays of items, so a gate remembers
// its failures even if one item alone probes again and again.
const gateKept = 2 * retryMax

// backoff returns the delay after this many failures in a row.
func backoff(first, limit time.Duration, failures int) time.Duration {
	d := first
	for ; failures > 1 && d < limit; failures-- {
		d *= 2
	}
	return min(d, limit)
}

// gate is closed after a failure. When its time is over, one request probes
// whether it can be opened; the others wait for the result.
//
// Invariants:
//   - A gate that is open has no time to wait for: until, since, and failures are
//     zero, and nothing probes.
//   - probing is true if and only if exactly one request in flight probes.
type gate[T any] struct {
	closed   bool
	probing  bool
	failures int
	round    uint16        // changes with each failure that closes the gate
	until    time.Duration // when the next request may probe
	since    time.Duration // when the gate closed

	// Of the gate of a namespace:
	key    Gate
	parked lanes[T] // items that are ready but for the gate
	index  int32    // in Schedule.probes
}

// admits reports whether a request may pass now. If it is the probe, admits says
// so and expects no other until the probe has ended.
func (g *gate[T]) admits(now time.Duration) (ok, probe bool) {
	switch {
	case !g.closed:
		return true, false
	case g.probing || now < g.until:
		return false, false
	}
	g.probing = true
	return true, true
}

// close closes the gate for at least delay.
func (g *gate[T]) close(now, delay time.Duration) {
	if !g.closed {
		g.closed, g.since = true, now
	}
	g.until = max(g.until, now+delay)
}

func (g *gate[T]) open() {
	g.closed, g.probing, g.failures, g.until, g.since = false, false, 0, 0, 0
}
