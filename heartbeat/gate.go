package heartbeat

import (
	"cmp"
	"strings"
	"time"
)

// Gate names what a request must pass: the server decides for each namespace and
// verb whether it permits and can handle a request.
type Gate struct{ Namespace, Verb string }

func (g Gate) compare(other Gate) int {
	return cmp.Or(strings.Compare(g.Namespace, other.Namespace), strings.Compare(g.Verb, other.Verb))
}

// The delays for which requests wait double from the first to the last with each request
// that fails.
const (
	pauseFirst = 5 * time.Second // after a push-back
	pauseMax   = 5 * time.Minute
	pauseGuess = 40 * time.Second // the longest pause that the server has not asked for

	retryFirst = time.Second // at a gate, and for each item
	retryMax   = 2 * time.Minute
	deniedMax  = 5 * time.Minute  // for an item that the server denies
	deniedLong = 40 * time.Minute // after DeniedOften denials in a row: at most 60 a day

	retryHurried = 100 * time.Millisecond // in a shutdown
)

// Several is the number of requests in a row, each for another item or at another time,
// that a gate must fail before the gate is to blame and not the items.
const Several = 16

// DeniedOften is the number of denials in a row from which an item is tried rarely: they take
// an hour and a half.
const DeniedOften = 24

const (
	// quick is how many items in a row probe without a delay, because the items that the
	// gate has failed can be the only ones that it fails.
	quick = 8
	// quickDenied is the same for items that the server denies, which is no sign that it has
	// too much to do.
	quickDenied = 128
	// newcomerAfter is the delay after a probe before an item that has just arrived probes,
	// although the gate is closed for longer: objects that a webhook fails can be made again
	// and again, and so can others beside them.
	newcomerAfter = 500 * time.Millisecond
	// slowAfter is the delay after a probe that takes long before another one.
	slowAfter = 4 * time.Second
	// maxProbes bounds how many probes are in flight of gates whose latest probe took long:
	// they can take until their timeouts.
	maxProbes = 16
	// maxSlow bounds how many requests of a closed gate that take long are in flight. An item
	// that has failed takes the first place alone.
	maxSlow = 2
	// gateKept is for how long a gate stays closed after its time is over if no item asks
	// to pass. It exceeds most delays of items, so a gate remembers its failures even if
	// one item alone probes again and again.
	gateKept = 2 * deniedMax
)

// backoff returns the delay after this many failures in a row.
func backoff(first, limit time.Duration, failures int) time.Duration {
	d := first
	for ; failures > 1 && d < limit; failures-- {
		d *= 2
	}
	return min(d, limit)
}

// pause is the gate of the server. It is closed after a push-back. When its time is over,
// one request probes whether it can be opened; the others wait for the result.
//
// Invariants:
//   - A pause that is open has no time to wait for: until, since, and failures are
//     zero, and nothing probes.
//   - probing is true if and only if exactly one request in flight probes.
type pause struct {
	closed   bool
	probing  bool
	failures int
	round    uint16        // changes with each failure that closes it
	until    time.Duration // when the next request may probe
	since    time.Duration // when it closed
}

// isOver reports whether a request can be made.
func (p *pause) isOver(now time.Duration) bool {
	return !p.closed || !p.probing && now >= p.until
}

// close closes the gate for at least delay.
func (p *pause) close(now, delay time.Duration) {
	if !p.closed {
		p.closed, p.since = true, now
	}
	p.until = max(p.until, now+delay)
}

func (p *pause) open() {
	p.closed, p.probing, p.failures, p.until, p.since = false, false, 0, 0, 0
}

// gate is the gate of a namespace and verb while it is closed: because nothing has passed
// it yet, or because a request has failed or takes long, and nothing has passed since. One
// request at a time probes. A gate that is open has no state.
type gate[T Item[T]] struct {
	key      Gate
	id       uint16        // tells it from earlier gates of the key
	probing  bool          // a request in flight probes, and does not take long
	slow     int           // requests in flight that take long
	round    uint16        // changes with each probe that ends
	failures int           // probes that have failed in a row
	isDenied bool          // the server has denied the latest of them
	turns    int           // of these, the ones that were due by until
	pushes   int           // probes in a row after which the server has pushed back
	last     time.Duration // when the latest probe began
	until    time.Duration // when an item probes, whether or not it has failed before
	pushed   time.Duration // until when the server wants no probe
	parked   parked[T]
	arrived  T     // the item that has arrived since the latest probe; see newcomer
	arrivals int   // items that have arrived and have not probed, limited to quick
	prober   T     // the item of the latest probe
	hangs    bool  // the latest probe takes long, or took long
	index    int32 // in Schedule.probes
}

// newcomer returns the item that has arrived since the latest probe, or another one that has
// arrived lately. ok is false if there is none, or if it has left.
func (g *gate[T]) newcomer() (item T, ok bool) {
	var none T
	switch {
	case g.arrived != none && g.parked.fresh.holds(g.arrived.Slot().in):
		return g.arrived, true
	case g.arrivals > 0 && g.parked.fresh.Len() > 0:
		return g.parked.fresh.first().Last(), true
	default:
		return none, false
	}
}

// next returns the item that probes the gate at a time when one is to. turn reports whether
// the delay of the gate is over. isHurried has those go first that have not failed.
//
// Of the items that have not failed, the first of their queue and one of the others go in
// turn, because those that the gate fails can be all in a row. When the delay is over, one
// that has waited for long goes before those that have just arrived. A push-back can concern
// one item, too: the item that has arrived goes before that one.
func (g *gate[T]) next(now time.Duration, isHurried bool) (item T, turn bool) {
	turn = now >= g.until
	p := &g.parked
	arrived, ok := g.newcomer()
	switch {
	case p.fresh.Len() == 0, turn && !isHurried && g.slow == 0 && p.tried.Len() > 0 && g.turns%2 == 1:
		return p.tried.First(), turn
	case ok && (g.pushes > 0 || !g.isQuick() && !turn):
		return arrived, turn
	case g.failures%2 == 1:
		return p.fresh.first().Sample(g.failures), turn
	default:
		return p.fresh.first().First(), turn
	}
}

// isQuick reports whether items that have not failed probe without a delay.
func (g *gate[T]) isQuick() bool {
	return g.failures < quick || g.isDenied && g.failures < quickDenied
}

// parked are the items that a closed gate holds up, ordered by the time by which they are
// due: those that have not failed, and those that have.
type parked[T any] struct {
	fresh lanes[T]
	tried Queue[T]
}

// Len returns the number of items.
func (p *parked[T]) Len() int { return p.fresh.Len() + p.tried.Len() }

func (p *parked[T]) holds(q *Queue[T]) bool { return q == &p.tried || p.fresh.holds(q) }

func (p *parked[T]) of(tried, hard bool) *Queue[T] {
	if tried {
		return &p.tried
	}
	return p.fresh.of(hard)
}

// first returns the queue of the item that goes first. There must be an item.
func (p *parked[T]) first() *Queue[T] {
	if p.fresh.Len() > 0 {
		return p.fresh.first()
	}
	return &p.tried
}
