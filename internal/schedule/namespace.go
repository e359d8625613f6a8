package schedule

import "time"

// namespace is a bulkhead. It is sick if its latest request has failed, or while one takes
// long. A namespace that is sick, or that no request has passed yet, is tight: few of its
// requests are in flight at a time.
type namespace[T any] struct {
	name  string
	fresh Queue[T]      // ready items that have not failed, by due - shift
	shift time.Duration // see postpone
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

	// in holds the places of the namespace in heaps of the Schedule: with requests for new
	// items, or paced, or idle; and with requests for items that have failed.
	in    [2]*Queue[*namespace[T]]
	index [2]int32
}

func newNamespace[T Item[T]](name string) *namespace[T] {
	index := func(item T) *int32 { return &item.Slot().index }
	return &namespace[T]{name: name, fresh: NewQueue(index), tried: NewQueue(index)}
}

// newHeap returns one for in[i].
func newHeap[T any](i int) Queue[*namespace[T]] {
	return NewQueue(func(n *namespace[T]) *int32 { return &n.index[i] })
}

func (n *namespace[T]) isSick() bool { return n.failures > 0 || n.slow > 0 }

// count changes the number of requests that count.
func (n *namespace[T]) count(by int, isRetry bool) {
	n.counted += by
	if isRetry {
		n.retries += by
	}
}

// fail records that a request has failed. If several in a row do, and the latest is for a new
// item, the others that wait may be of the same kind: what arrives from now on goes first.
func (n *namespace[T]) fail(isRetry bool, now time.Duration) {
	n.failures++
	if n.failures > 1 && !isRetry && n.fresh.Len() > 0 {
		n.shift = max(n.shift, now+later-n.fresh.first())
	}
}

// plan puts a namespace where it belongs after a change.
func (s *Schedule[T]) plan(n *namespace[T]) {
	tight, share, delay := 0, 0, time.Duration(0)
	isOpen, isOpenForRetries := true, true
	if n.isSick() {
		delay = later
	}
	if n.isSick() || !n.passed {
		tight, share = 1, n.counted
		isOpen = n.counted < maxTight
		isOpenForRetries = isOpen && n.retries < maxTightRetries
	}
	s.allTight += share - n.share
	n.share = share

	var fresh, tried *Queue[*namespace[T]]
	var freshAt, triedAt time.Duration
	switch {
	case n.pending == 0 && n.inFlight == 0:
		fresh, freshAt = &s.idle, s.now+namespaceKept
	case !isOpen || n.fresh.Len() == 0:
	case n.paced:
		fresh, freshAt = &s.paced, n.next
	default:
		fresh, freshAt = &s.fresh[tight], n.fresh.first()+n.shift+delay
	}
	if isOpenForRetries && n.tried.Len() > 0 {
		tried, triedAt = &s.tried[tight], n.tried.first()+delay
	}
	move(n, &n.in[0], fresh, freshAt)
	move(n, &n.in[1], tried, triedAt)
}
