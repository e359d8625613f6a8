package schedule

import "time"

const (
	// later is how much later what has failed is due: an item than the end of its back-off,
	// and what waits in a sick namespace than what waits elsewhere.
	later = 5 * time.Minute
	// maxTight bounds the requests in flight of a tight namespace, and maxTightRetries those of
	// them whose items have failed.
	maxTight, maxTightRetries = 2, 1
	// maxAllTight bounds the requests in flight of all tight namespaces: they can take until
	// their timeouts.
	maxAllTight = 32
	// pace is the time between two requests for new items of a namespace that has failed
	// Several in a row.
	pace = 500 * time.Millisecond
	// flightCounts is for how long a request in flight counts against these bounds. If it
	// takes longer, whoever makes it hangs.
	flightCounts = time.Minute
	// namespaceKept is for how long a namespace is remembered that has nothing to do, and
	// maxIdle bounds how many of these are.
	namespaceKept = 10 * time.Minute
	maxIdle       = 10_000
)

// namespace is a bulkhead. It is sick if its latest request has failed, or while one takes
// long. A namespace that is sick, or that no request has passed yet, is tight: few of its
// requests are in flight at a time.
type namespace[T any] struct {
	name  string
	fresh Queue[T]      // ready items that have not failed, by the time by which they are due, without shift
	shift time.Duration // see postpone
	tried Queue[T]      // ready items that have failed: fewer failures first, then by that time

	pending    int           // items with something to write
	inFlight   int           // requests in flight
	counted    int           // of these, the ones that count: see flightCounts
	retries    int           // of the counted ones, those whose items had failed
	slow       int           // requests in flight that take long
	failures   int           // requests in a row that have failed
	passed     bool          // a request has passed
	share      int           // in Schedule.allTight
	paced      bool          // no request for a new item until next
	next       time.Duration // see paced
	encouraged time.Duration // see Schedule.encourage

	// The places of the namespace in heaps of the Schedule. It has places if requests can be
	// made, one for new items and one for others; or the first one if it is idle or paced.
	freshIn, retryIn       *Queue[*namespace[T]]
	freshIndex, retryIndex int32
	rank                   uint8 // of its first item that has failed
}

func (n *namespace[T]) isSick() bool { return n.failures > 0 || n.slow > 0 }

// leave records that a request no longer counts.
func (n *namespace[T]) leave(isRetry bool) {
	n.counted--
	if isRetry {
		n.retries--
	}
}

// postpone makes the new items that wait due later, because a request for one of them has
// failed. It is likely that the others fail, too, if they come from one object or webhook:
// so what arrives from now on goes first. A single failure is no sign of that.
func (n *namespace[T]) postpone(now time.Duration) {
	if n.failures > 1 && n.fresh.Len() > 0 {
		n.shift = max(n.shift, now+later-n.fresh.first())
	}
}

// namespace returns the namespace with this name, and begins to remember it.
func (s *Schedule[T]) namespace(name string) *namespace[T] {
	n := s.namespaces[name]
	if n == nil {
		index := func(item T) *int32 { return &item.Slot().index }
		n = &namespace[T]{name: name, fresh: NewQueue(index), tried: NewQueue(index), encouraged: always}
		n.tried.rank = func(item T) uint8 { return item.Slot().rank() }
		s.namespaces[name] = n
	}
	return n
}

// plan puts a namespace where it belongs after a change. n can be nil.
func (s *Schedule[T]) plan(n *namespace[T]) {
	if n == nil {
		return
	}
	var fresh, retry *Queue[*namespace[T]]
	var freshAt, retryAt time.Duration
	heaps, share, delay := &s.healthy, 0, time.Duration(0)
	isOpen, isOpenForRetries := true, true
	if n.isSick() {
		delay = later
	}
	if n.isSick() || !n.passed {
		heaps, share = &s.tight, n.counted
		isOpen = n.counted < maxTight
		isOpenForRetries = isOpen && n.retries < maxTightRetries
	}
	s.allTight += share - n.share
	n.share = share

	switch {
	case n.pending == 0 && n.inFlight == 0:
		fresh, freshAt = &s.idle, s.now+namespaceKept
	case !isOpen || n.fresh.Len() == 0:
	case n.paced:
		fresh, freshAt = &s.paced, n.next
	default:
		fresh, freshAt = &heaps.fresh, n.fresh.first()+n.shift+delay
	}
	if isOpenForRetries && n.tried.Len() > 0 {
		retry, retryAt = &heaps.retry, n.tried.first()+delay
		n.rank = n.tried.First().Slot().rank()
	}
	move(n, &n.freshIn, fresh, freshAt)
	move(n, &n.retryIn, retry, retryAt)
}

// heaps are namespaces that have a request to make, by the time by which that is due.
type heaps[T any] struct{ fresh, retry Queue[*namespace[T]] }

func newHeaps[T any]() (h heaps[T]) {
	h.fresh = newHeap[T]()
	h.retry = NewQueue(func(n *namespace[T]) *int32 { return &n.retryIndex })
	h.retry.rank = func(n *namespace[T]) uint8 { return n.rank }
	return h
}

func newHeap[T any]() Queue[*namespace[T]] {
	return NewQueue(func(n *namespace[T]) *int32 { return &n.freshIndex })
}
