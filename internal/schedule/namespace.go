package schedule

import "time"

// namespace is a bulkhead. It is sick if its latest request has failed, or while one takes
// long: then few of its requests are in flight at a time.
type namespace[T any] struct {
	name     string
	ready    [2]Queue[T]   // by kind: new items, by due - shift, and those that have failed, by due
	shift    time.Duration // see fail
	pending  int           // items with something to write
	inFlight int           // requests that count: see flightCounts
	retries  int           // of these, the ones for items that have failed
	slow     int           // requests that take long
	failures int           // requests in a row that have failed
	passed   bool          // a request has passed
	next     time.Duration // when the next request can be made, after Several failures
	share    int           // in Schedule.allSick

	in    [2]*Queue[*namespace[T]] // by kind: the heap of the Schedule that holds it
	index [2]int32
}

// The kinds of items.
const fresh, tried = 0, 1

// count changes the number of requests that count.
func (n *namespace[T]) count(by, kind int) {
	n.inFlight += by
	n.retries += by * kind
}

// fail records that a request has failed. If several in a row have, and this one was for a
// new item, those that wait may be alike: what arrives from now on goes first.
func (n *namespace[T]) fail(kind int, now time.Duration) {
	n.failures++
	if n.failures > 1 && kind == fresh && n.ready[fresh].Len() > 0 {
		n.shift = max(n.shift, now+later-n.ready[fresh].first())
	}
}

// plan puts a namespace where it belongs after a change.
func (s *Schedule[T]) plan(n *namespace[T]) {
	sick, share, delay, places := 0, 0, time.Duration(0), [2]int{1, 1}
	switch {
	case n.failures > 0 || n.slow > 0:
		sick, share, delay = 1, n.inFlight, later
		places[fresh] = maxSick - n.inFlight
		places[tried] = min(places[fresh], maxSickRetries-n.retries)
	case !s.hurried && (!n.passed || s.allSick >= maxAllSick): // it may fail or hang as well
		places = [2]int{1 - n.inFlight, 1 - n.inFlight}
	}
	s.allSick += share - n.share
	n.share = share

	var to [2]*Queue[*namespace[T]]
	at := [2]time.Duration{n.ready[fresh].first() + delay, n.ready[tried].first() + delay}
	if !s.hurried { // a shutdown tries each item once before it tries one again
		at[fresh] += n.shift
	}
	for kind := range to {
		if places[kind] > 0 && n.ready[kind].Len() > 0 {
			to[kind] = &s.ready[kind][sick]
		}
	}
	switch {
	case n.pending == 0 && n.inFlight == 0 && n.slow == 0 && len(s.namespaces) > maxIdle:
		delete(s.namespaces, n.name)
	case n.failures >= Several && n.next > s.now && !s.hurried && (to[fresh] != nil || to[tried] != nil):
		to[0], to[1], at[0] = &s.paced, nil, n.next
	}
	for i := range to {
		move(n, &n.in[i], to[i], at[i])
	}
}
