package schedule

import "time"

// namespace is a bulkhead. It is sick if its latest request has failed, or while one takes
// long. A namespace that is sick, or that no request has passed yet, is tight: few of its
// requests are in flight at a time.
type namespace[T any] struct {
	name  string
	fresh Queue[T]      // ready items that have not failed, by due - shift
	shift time.Duration // see fail
	tried Queue[T]      // ready items that have failed, by due

	pending  int           // items with something to write
	inFlight int           // requests that count: see flightCounts
	retries  int           // of these, the ones for items that had failed
	slow     int           // requests that take long
	failures int           // requests in a row that have failed
	passed   bool          // a request has passed
	next     time.Duration // when the next request for a new item can be made, after Several failures
	share    int           // in Schedule.allTight

	in    [2]*Queue[*namespace[T]] // where it is for its fresh items, and for the others
	index [2]int32
}

// count changes the number of requests that count.
func (n *namespace[T]) count(by int, isRetry bool) {
	n.inFlight += by
	if isRetry {
		n.retries += by
	}
}

// fail records that a request has failed. If several in a row have, and this one was for a
// new item, those that wait may be of the same kind: what arrives from now on goes first.
func (n *namespace[T]) fail(isRetry bool, now time.Duration) {
	n.failures++
	if n.failures > 1 && !isRetry && n.fresh.Len() > 0 {
		n.shift = max(n.shift, now+later-n.fresh.first())
	}
}

// plan puts a namespace where it belongs after a change.
func (s *Schedule[T]) plan(n *namespace[T]) {
	tight, share, delay, places := 0, 0, time.Duration(0), [2]int{1, 1}
	isSick := n.failures > 0 || n.slow > 0
	if isSick {
		delay = later
	}
	switch {
	case isSick:
		tight, share = 1, n.inFlight
		places[0] = maxTight - n.inFlight
		places[1] = min(places[0], maxTightRetries-n.retries)
	case !n.passed || s.allTight >= maxAllTight:
		places = [2]int{1 - n.inFlight, 1 - n.inFlight}
	}
	s.allTight += share - n.share
	n.share = share

	var to [2]*Queue[*namespace[T]]
	at := [2]time.Duration{n.fresh.first() + n.shift + delay, n.tried.first() + delay}
	isReady := [2]bool{n.fresh.Len() > 0 && places[0] > 0, n.tried.Len() > 0 && places[1] > 0}
	switch {
	case n.pending == 0 && n.inFlight == 0 && n.slow == 0:
		to[0], at[0] = &s.idle, s.now
	case (isReady[0] || isReady[1]) && n.failures >= Several && n.next > s.now && !s.hurried:
		to[0], at[0] = &s.paced, n.next
	default:
		if isReady[0] {
			to[0] = &s.fresh[tight]
		}
		if isReady[1] {
			to[1] = &s.tried[tight]
		}
	}
	for i := range to {
		move(n, &n.in[i], to[i], at[i])
	}
}
