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
	inFlight int           // requests in flight
	counted  int           // of these, the ones that count: see flightCounts
	retries  int           // of the counted ones, those of items that had failed
	slow     int           // requests in flight that take long
	failures int           // requests in a row that have failed
	passed   bool          // a request has passed
	paced    bool          // no request for a new item until next
	next     time.Duration // see paced
	share    int           // in Schedule.allTight

	// in holds its place in the heaps of the Schedule for requests for new items, and for
	// those that have failed.
	in    [2]*Queue[*namespace[T]]
	index [2]int32
}

func (n *namespace[T]) isIdle() bool { return n.pending == 0 && n.inFlight == 0 }

// count changes the number of requests that count.
func (n *namespace[T]) count(by int, isRetry bool) {
	n.counted += by
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
	var delay time.Duration
	tight, share, isOpen, isOpenForRetries := 0, 0, true, true
	isSick := n.failures > 0 || n.slow > 0
	if isSick {
		delay = later
	}
	if isSick || !n.passed {
		tight, share = 1, n.counted
		isOpen = n.counted < maxTight
		isOpenForRetries = isOpen && n.retries < maxTightRetries
	}
	s.allTight += share - n.share
	n.share = share

	var fresh, tried *Queue[*namespace[T]]
	freshAt := n.fresh.first() + n.shift + delay
	if isOpen && n.fresh.Len() > 0 {
		fresh = &s.fresh[tight]
		if n.paced {
			fresh, freshAt = &s.paced, n.next
		}
	}
	if isOpenForRetries && n.tried.Len() > 0 {
		tried = &s.tried[tight]
	}
	move(n, &n.in[0], fresh, freshAt)
	move(n, &n.in[1], tried, n.tried.first()+delay)
}
