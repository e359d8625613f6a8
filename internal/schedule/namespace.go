package schedule

import (
	"math"
	"time"
)

// never is a time before all others. Zero is none: the clock of the caller can be set back.
const never = math.MinInt64

// freeRetries is the number of retries of a namespace that may fail in a row before others wait for more
// than their items.
const freeRetries = 3

// later is by how much a retry is due later for each failure of its item, up to eight.
const later = deniedMax

// others is the number of requests of healthy namespaces for each one that is less likely to pass, while both wait.
const others = 4

// namespace is a client of its own.
type namespace[T any] struct {
	name    string
	lanes   [kinds]lane[T]
	pending Queue[T]      // items with something to write, by the time since when, wherever they are
	turn    time.Duration // just after its latest request
	until   time.Duration // the server wants no request before

	failures int  // requests in a row that have failed
	slow     int  // requests in flight that take long
	wasSlow  bool // no request has passed quickly since one took long

	retries  int           // in a row that did not pass, less than freeRetries
	interval time.Duration // before the next one. Zero before freeRetries have failed
	retryAt  time.Duration // when the next one can be made
}

// kind tells the items of a namespace apart.
type kind uint8

const (
	fresh kind = iota // the latest request of the item has not failed
	tried             // it has
	kinds
)

// lane is the items of one kind whose requests can be made as far as they are concerned.
type lane[T any] struct {
	*namespace[T]
	kind     kind
	inFlight int
	items    Queue[T] // by due

	in    *Queue[*lane[T]] // the queue that holds it, nil if it has no request to make
	index int32            // in that queue
}

func (n *namespace[T]) inFlight() int { return n.lanes[fresh].inFlight + n.lanes[tried].inFlight }

func (n *namespace[T]) isSlow() bool { return n.slow > 0 || n.wasSlow }

// isSick reports whether few requests of n shall be in flight. In a shutdown, a namespace that answers slowly is not sick.
func (s *Schedule[T]) isSick(n *namespace[T]) bool {
	return n.failures > 0 || n.isSlow() && !s.hurried
}

// isFull reports whether no more requests of l can be in flight. A sick namespace gets none while
// two are in flight, and no retry while another one is, so that a new item does not wait for it.
func (s *Schedule[T]) isFull(l *lane[T]) bool {
	return s.isSick(l.namespace) && (l.namespace.inFlight() >= int(kinds) || l.kind == tried && l.inFlight > 0)
}

// isLikely reports whether the requests of l will probably pass: new ones of a healthy namespace.
func (s *Schedule[T]) isLikely(l *lane[T]) bool { return l.kind == fresh && !s.isSick(l.namespace) }

// order returns the order of l among those that have a request to make. Namespaces whose requests are overdue take turns.
func (s *Schedule[T]) order(l *lane[T]) time.Duration {
	at := max(l.items.earliest(), l.turn)
	switch {
	case !s.hurried:
	case l.isSlow():
		at += 3 * rank
	case l.kind == tried:
		at += 2 * rank
	case !s.isLikely(l):
		at += rank
	}
	return at
}

// rank is a distance in the order of a shutdown that no due time bridges.
const rank = math.MaxInt64 / 4

// plan puts the lanes of a namespace where they belong after a change, and forgets a namespace that is idle and not paused,
// while there are many. A pause keeps a lane that is empty, so the namespace can be forgotten when it ends.
func (s *Schedule[T]) plan(n *namespace[T]) {
	for k := range n.lanes {
		l, from := &n.lanes[k], n.until // when its next request can be made as far as the namespace is concerned
		if l.kind == tried && !s.hurried {
			from = max(from, n.retryAt)
		}
		switch {
		case l.items.Len() == 0 && n.until <= s.now || s.isFull(l):
			move(l, &l.in, nil, 0)
		case from > s.now:
			move(l, &l.in, &s.paced, from)
		case s.isLikely(l):
			move(l, &l.in, &s.likely, s.order(l))
		default:
			move(l, &l.in, &s.unlikely, s.order(l))
		}
	}
	if n.pending.Len() == 0 && n.inFlight() == 0 && n.until <= s.now && len(s.namespaces) > MaxRemembered {
		delete(s.namespaces, n.name)
	}
}

// answer takes the response to a request of an item of a kind. One that the server denies or refuses shows that it
// handles requests.
func (n *namespace[T]) answer(k kind, a Answer, wasSlow bool, now time.Duration, jitter func(time.Duration) time.Duration) {
	if a.Outcome.Fails() {
		n.failures++
	} else {
		n.failures = 0
		n.wasSlow = n.wasSlow && wasSlow
	}
	if a.Pause > 0 {
		n.until = max(n.until, now+a.Pause)
	}
	switch {
	case k == fresh && a.Outcome.Passed():
		n.interval, n.retryAt = min(n.interval, RetryFirst), min(n.retryAt, now+RetryFirst)
	case k == fresh:
	case a.Outcome.Passed():
		n.retries, n.interval, n.retryAt = 0, 0, never
	case n.retries < freeRetries-1:
		n.retries++
	default:
		n.interval = min(max(2*n.interval, RetryFirst), RetryMax)
		if a.Outcome.Handled() {
			n.interval = RetryFirst
		}
		n.retryAt = now + jitter(n.interval)
	}
}
