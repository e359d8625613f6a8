package schedule

import (
	"math"
	"time"
)

// never is a time before all others. Zero is none: the clock of the caller can be set back.
const never = math.MinInt64

// namespace is a bulkhead: a client of its own. Namespaces share the places for requests in
// flight, turns, and the throttles of retries. Otherwise no response in one changes another one.
//
// It is sick if its latest request has failed, or while one takes long: then few of its requests
// are in flight at a time.
type namespace[T any] struct {
	name    string
	lanes   [kinds]lane[T]
	shift   time.Duration // of new items that wait while others fail: see Schedule.Done
	pending Queue[T]      // items with something to write, by the time since when, wherever they are

	slow      int           // requests in flight that take long, without those that hang
	hangs     int           // requests in flight that hang
	hangsNext time.Duration // when another one can begin to hang, if one does

	failures  int           // requests in a row that have failed
	since     time.Duration // when the first of them had
	hung      bool          // one of them took long, or in a shutdown, one does
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
	class  int      // see classify
	flying int      // requests in flight, without those that hang
	items  Queue[T] // new ones by due - shift, and those that have failed by due

	in    *Queue[*lane[T]] // the queue that holds it, nil if it has no request to make
	index int32            // in that queue
}

// The classes of lanes. A shutdown makes requests in their order.
const (
	healthy = iota
	failing              // the latest request of the namespace has failed
	first                // of retries: none of the namespace has failed, so old failures are no news about it
	recent               // the namespace is healthy, or has failed for up to recentAge
	classes = recent + 8 // in each of the others, it has failed for up to four times as long as in the one before
)

// recentAge is chosen so that an outage of half an hour costs few requests, and a blip of half a
// minute shares a limit with nothing that has failed for a minute.
const recentAge = 12 * time.Second

// longestOfAll returns the longest interval between retries of all of a class: a part of the time for
// which they have failed, so a namespace is not held up for longer than its own trouble takes.
func longestOfAll(class int) time.Duration {
	return min(recentAge/4<<(2*max(0, class-recent)), RetryMax)
}

func newNamespace[T any](name string, items, pending Queue[T]) *namespace[T] {
	n := &namespace[T]{name: name, pending: pending, throttle: throttle{free: FreeRetries, first: RetryFirst}, until: never, permitted: never}
	for k := range n.lanes {
		n.lanes[k] = lane[T]{namespace: n, items: items}
	}
	n.classify(0)
	return n
}

// classify sets the classes of lanes, after a response or when the failures have become older.
func (n *namespace[T]) classify(now time.Duration) {
	n.lanes[fresh].class = min(n.failures, failing)
	if n.throttle.failures == 0 {
		n.lanes[tried].class = first
		return
	}
	for n.lanes[tried].class = recent; n.lanes[tried].agesAt() <= now; n.lanes[tried].class++ {
	}
}

// agesAt returns when the failures of the namespace are too old for the class of l, or Never.
func (l *lane[T]) agesAt() time.Duration {
	if l.failures == 0 || l.class < recent || l.class == classes-1 {
		return Never
	}
	return l.since + recentAge<<(2*(l.class-recent))
}

func (n *namespace[T]) inFlight() int { return n.lanes[fresh].flying + n.lanes[tried].flying }

func (n *namespace[T]) isSick() bool { return n.failures > 0 || n.slow > 0 }

// isHanging reports whether requests of n probably hang. One that takes long and passes is of a
// slow server, which all need.
func (n *namespace[T]) isHanging() bool { return n.hung || n.slow > 0 }

// order returns when the next request of l is due. Namespaces take turns.
func (l *lane[T]) order() time.Duration {
	at := l.items.first() + RetryFirst*time.Duration(l.inFlight())
	if l.class < first {
		at += l.shift
	}
	if l.isSick() || l.hangs > 0 {
		at += later
	}
	return at
}

// from returns when the next request of l can be made as far as its namespace is concerned.
func (l *lane[T]) from(hurried bool) time.Duration {
	from := l.until
	if l.class >= first && !hurried {
		from = max(from, l.throttle.at())
	}
	if l.failures >= Several && !hurried {
		from = max(from, l.pace)
	}
	return from
}

// isFull reports whether no more requests of l can be in flight. A sick namespace has one for each kind,
// and one retry, so that a new item does not wait for it. A healthy namespace may be slow, too: while
// Several requests take long, it waits until its request ends or takes long.
func (s *Schedule[T]) isFull(l *lane[T]) bool {
	if l.isSick() {
		return l.inFlight() >= int(kinds) || l.class >= first && l.flying > 0
	}
	return l.inFlight() > 0 && s.isCrowded()
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
		case n.isHanging():
			move(l, &l.in, &s.ready[classes+l.class], l.order())
		default:
			move(l, &l.in, &s.ready[l.class], l.order())
		}
	}
}
