package schedule

import "time"

// namespace is a bulkhead. It is sick if its latest request has failed, or while one takes
// long: then few of its requests are in flight at a time.
type namespace[T any] struct {
	name      string
	ready     [2]Queue[T]   // by kind: new items, by due - shift, and those that have failed, by due
	shift     time.Duration // of new items that wait while others fail: see Schedule.Done
	pending   int           // items with something to write
	inFlight  int           // requests, except those that hang
	retries   int           // of these, the ones for items that have failed
	slow      int           // requests that take long
	failures  int           // requests in a row that have failed
	next      time.Duration // when the next request can be made, after Several failures
	permitted time.Duration // when an item passed that had been denied

	in    *Queue[*namespace[T]] // the queue that holds it, nil if it has no request to make
	index int32                 // in that queue
}

// The kinds of items: new ones, and those that have failed.
const fresh, tried = 0, 1

// count changes the number of requests in flight.
func (n *namespace[T]) count(by, kind int) {
	n.inFlight += by
	n.retries += by * kind
}

// isFull reports whether no more requests of n for items of a kind can be in flight. A healthy
// namespace may hang, too. When slowPlaces are free, it waits until its request ends or takes long.
func (s *Schedule[T]) isFull(n *namespace[T], kind int) bool {
	if n.failures+n.slow > 0 {
		return n.inFlight >= maxSick || kind == tried && n.retries >= maxSickRetries
	}
	return n.inFlight > 0 && s.slow >= slowPlaces && !s.hurried
}

// isTriedDue reports whether an item of n that has failed goes before its new ones, of which
// there is one. A shutdown tries each item once before one again, and a new one is a better probe.
func (s *Schedule[T]) isTriedDue(n *namespace[T]) bool {
	return !s.isFull(n, tried) && n.ready[tried].first() < n.ready[fresh].first()+n.shift && !s.hurried && !s.server.on
}

// plan puts a namespace where it belongs after a change: to those with a new item if it has one.
// Then items that have failed wait for its turn.
func (s *Schedule[T]) plan(n *namespace[T]) {
	kind, sick, at := fresh, min(n.failures+n.slow, 1), n.ready[fresh].first()+n.shift
	if n.ready[fresh].Len() == 0 {
		kind, at, n.shift = tried, n.ready[tried].first(), 0
	}
	if n.pending == 0 && n.inFlight == 0 && n.slow == 0 && len(s.namespaces) > maxIdle {
		delete(s.namespaces, n.name)
	}
	switch {
	case n.ready[kind].Len() == 0 || s.isFull(n, kind):
		move(n, &n.in, nil, 0)
	case n.failures >= Several && n.next > s.now && !s.hurried:
		move(n, &n.in, &s.paced, n.next)
	default:
		move(n, &n.in, &s.ready[kind][sick], at+later*time.Duration(sick)+turn*time.Duration(n.inFlight))
	}
}
