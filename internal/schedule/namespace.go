package schedule

import (
	"math"
	"time"
)

// never is a time before all others. Zero is none: the clock of the caller can be set back.
const never = math.MinInt64

// namespace is a bulkhead: a client of its own. Namespaces share the places for requests in
// flight, turns, and the throttle of all. Otherwise no response in one changes another one.
//
// It is sick if its latest request has failed, or while one takes long: then few of its requests
// are in flight at a time.
type namespace[T any] struct {
	name    string
	lanes   [kinds]lane[T]
	shift   time.Duration // of new items that wait while others fail: see Schedule.Done
	pending Queue[T]      // items with something to write, by the time since when, wherever they are

	// Invariant: retries <= inFlight. Requests that hang are in neither.
	inFlight, retries int
	slow              int           // requests that take long, with those that hang
	hangs             int           // requests that hang
	hangsNext         time.Duration // when the next request can begin to hang, if one does

	failures  int           // requests in a row that have failed
	since     time.Duration // when the first of them had
	hung      bool          // one of them took long
	throttle  throttle      // of retries
	pace      time.Duration // when the next request can be made, after Several failures
	until     time.Duration // the server wants no request before
	permitted time.Duration // when an item passed that had been denied
}

// kind tells the items of a namespace apart.
type kind uint8

const (
	fresh kind = iota // the latest request of the item has not failed
	tried             // it has
	kinds
)

// lane is the items of one kind whose requests can be made as far as they are concerned. It is
// in one of the queues of the Schedule if it has any.
type lane[T any] struct {
	*namespace[T]
	kind  kind
	items Queue[T] // new ones by due - shift, and those that have failed by due

	in    *Queue[*lane[T]] // the queue that holds it, nil if it has no request to make
	index int32            // in that queue
}

func newNamespace[T any](name string, items, pending Queue[T]) *namespace[T] {
	n := &namespace[T]{name: name, pending: pending, throttle: throttle{free: freeRetries}, until: never, permitted: never}
	for k := range n.lanes {
		n.lanes[k] = lane[T]{namespace: n, kind: kind(k), items: items}
	}
	return n
}

func (n *namespace[T]) isSick() bool { return n.failures > 0 || n.isSlow() }

// isSlow reports whether a request takes long, without those that hang.
func (n *namespace[T]) isSlow() bool { return n.slow > n.hangs }

// count changes the number of requests in flight.
func (n *namespace[T]) count(by int, k kind) {
	n.inFlight += by
	n.retries += by * int(k)
}

// hang reports whether a request that has taken long for hangsAfter stops counting as in flight:
// one after a minute, and another one after 2, 4, 8 minutes, and so on. So requests that never
// end do not stop their namespace for ever, and are few.
func (n *namespace[T]) hang(now time.Duration) bool {
	if n.hangs > 0 && now < n.hangsNext {
		return false
	}
	n.hangsNext = now + hangsAfter<<min(n.hangs, maxHangs)
	return true
}

// due returns by when the next request of l should be made.
func (l *lane[T]) due() time.Duration {
	if l.items.Len() == 0 || l.kind == tried {
		return l.items.first()
	}
	return l.items.first() + l.shift
}

// isHanging reports whether requests of n probably hang. One that takes long and passes is of a
// slow server, which all need.
func (n *namespace[T]) isHanging() bool { return n.hung || n.isSlow() }

// The ranks of lanes. A shutdown makes requests in their order.
const (
	freshHealthy = iota
	freshFailing
	freshHanging
	triedFirst  // no retry of the namespace has failed: old failures are no news about it
	triedLately // the namespace is healthy, or has not failed for long
	triedOld
	triedHanging
	ranks
)

// rank returns the rank of l.
func (l *lane[T]) rank(now time.Duration) int {
	switch isTried := l.kind == tried; {
	case isTried && (l.isSlow() || l.hung && now-l.since > lately):
		return triedHanging
	case isTried && l.throttle.failures == 0 && !l.hung:
		return triedFirst
	case isTried && (l.failures == 0 || now-l.since <= lately):
		return triedLately
	case isTried:
		return triedOld
	case l.isHanging():
		return freshHanging
	case l.failures > 0:
		return freshFailing
	default:
		return freshHealthy
	}
}

// order returns the place of l among those of its rank. Namespaces take turns.
func (l *lane[T]) order() time.Duration {
	at := l.due() + turn*time.Duration(l.inFlight)
	if l.isSick() {
		at += later
	}
	return at
}

// from returns when the next request of l can be made as far as its namespace is concerned.
func (l *lane[T]) from(hurried bool) time.Duration {
	from := l.until
	if l.kind == tried && !hurried {
		from = max(from, l.throttle.at())
	}
	if l.failures >= Several && !hurried {
		from = max(from, l.pace)
	}
	return from
}

// isFull reports whether no more requests of l can be in flight. A healthy namespace may hang,
// too: while slowPlaces requests take long, it waits until its request ends or takes long.
func (s *Schedule[T]) isFull(l *lane[T]) bool {
	if l.isSick() {
		return l.inFlight >= maxSick || l.kind == tried && l.retries >= maxSickRetries
	}
	return l.inFlight > 0 && s.isCrowded()
}

// plan puts the lanes of a namespace where they belong after a change. A pause keeps a lane that is
// empty, so the namespace can be forgotten when it ends.
func (s *Schedule[T]) plan(n *namespace[T]) {
	if n.lanes[fresh].items.Len() == 0 {
		n.shift = 0
	}
	for k := range n.lanes {
		switch l := &n.lanes[k]; {
		case l.items.Len() == 0 && n.until <= s.now || s.isFull(l):
			move(l, &l.in, nil, 0)
		case l.from(s.hurried) > s.now:
			move(l, &l.in, &s.paced, l.from(s.hurried))
		default:
			move(l, &l.in, &s.ready[l.rank(s.now)], l.order())
		}
	}
}
