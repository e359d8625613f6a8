// Package schedule decides which of many items takes the next request to a server. Each namespace
// is a client of its own: namespaces share the places for requests in flight, and nothing else. The
// package knows nothing of what the requests contain.
//
//   - An item has an exponential back-off.
//   - A namespace is sick while its latest request has failed, or takes long. Then it has few requests
//     in flight. Of its retries, three in a row can fail, and then it has one in each interval. For
//     how long the server asks, it has no requests.
//   - A request that takes longer than [SlowAfter] leaves its place to another one.
//   - Namespaces take turns. In a namespace, the earliest due goes first.
//
// All methods take O(log n), except Hurry, Failed, Backlog, and Sick.
package schedule

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// MaxRemembered bounds each memory of what a program can make up for ever, such as namespaces: from so
// many on, idle ones are forgotten.
const MaxRemembered = 10_000

// MaxPlaces is the number of places in a shutdown. With responses after 100 ms, 2,500
// series can be written in ten seconds. No process needs more before.
const MaxPlaces = 32

// SlowAfter is the time after which a request leaves its place to another one.
const SlowAfter = 100 * time.Millisecond

// Item is an element of a [Schedule]: usually a pointer to a struct with a [Slot].
type Item[T any] interface {
	comparable
	Slot() *Slot[T]    // the slot of the item, always at the same address
	Namespace() string // of the requests for the item, always the same
}

// Slot is where an item is in a [Schedule], and its failures, which only the Schedule
// changes. The zero value means that the item is idle and has not failed.
type Slot[T any] struct {
	Handled uint8   // failures in a row of requests that the server has handled, at most 255
	failed  uint8   // the other ones in the same row, at most 255
	Last    Outcome // of the latest request

	index   int32         // in the queue in, plus one
	pending int32         // in namespace.pending, plus one; zero if nothing is to be written
	in      *Queue[T]     // the queue that holds the item, nil if it is idle
	until   time.Duration // when its delay ends; zero if it has none
	due     time.Duration // see Schedule.Ready
}

// Failures returns the number of requests in a row that have failed.
func (s *Slot[T]) Failures() int { return int(s.Handled) + int(s.failed) }

// kind returns the kind of an item. It is the same from Next to Done.
func (s *Slot[T]) kind() kind { return kind(min(s.Failures(), 1)) }

// Schedule decides which item takes the next request. Each item is in one place: idle;
// waiting until a time; held until its delay ends; ready; or in flight.
//
// Times are distances from an epoch that the caller chooses, and do not decrease. A Schedule
// starts no goroutine and reads no clock; the same calls have the same results. It is not
// safe for concurrent use. Make one with [New].
type Schedule[T Item[T]] struct {
	patience time.Duration
	jitter   func(time.Duration) time.Duration
	places   int           // requests in flight that do not take long, at most
	quick    int           // requests in flight that do not take long
	now      time.Duration // of the latest call
	hurried  bool          // see Hurry

	waiting Queue[T] // by the time until which they wait
	held    Queue[T] // by the end of their delay
	flights Queue[T] // by when they take long, then Never

	namespaces map[string]*namespace[T]
	likely     Queue[*lane[T]] // with a request to make that will probably pass, by order
	unlikely   Queue[*lane[T]] // with another request to make, by order
	inRow      int             // requests from likely since the latest one from unlikely
	paced      Queue[*lane[T]] // by when the next request can be made
}

// New returns an empty Schedule with places for requests in flight. Requests that take long do not count.
// An item that fails has its next request after patience at the latest, since it has something to write.
// The Schedule applies jitter to the delays after failed requests, unless jitter is nil.
func New[T Item[T]](places int, patience time.Duration, jitter func(time.Duration) time.Duration) *Schedule[T] {
	if jitter == nil {
		jitter = func(d time.Duration) time.Duration { return d }
	}
	items := NewQueue(func(item T) *int32 { return &item.Slot().index })
	lanes := NewQueue(func(l *lane[T]) *int32 { return &l.index })
	return &Schedule[T]{
		patience: patience, jitter: jitter, places: places, waiting: items, held: items, flights: items,
		namespaces: make(map[string]*namespace[T]), likely: lanes, unlikely: lanes, paced: lanes,
	}
}

// namespace returns the namespace with this name, and remembers it.
func (s *Schedule[T]) namespace(name string) *namespace[T] {
	n := s.namespaces[name]
	if n == nil {
		n = &namespace[T]{name: name, turn: never, until: never, retryAt: never}
		n.pending = NewQueue(func(item T) *int32 { return &item.Slot().pending })
		for k := range n.lanes {
			n.lanes[k] = lane[T]{namespace: n, kind: kind(k), items: NewQueue(s.waiting.index)}
		}
		s.namespaces[name] = n
	}
	return n
}

// Wait makes item wait until the given time, unless it is in flight. Nothing of it is to be
// written.
func (s *Schedule[T]) Wait(item T, until, now time.Duration) {
	s.now = now
	s.unmark(item)
	s.put(item, &s.waiting, until)
}

// Remove removes item. If it is in flight, [Schedule.Done] must still follow.
func (s *Schedule[T]) Remove(item T) {
	s.unmark(item)
	s.put(item, nil, 0)
}

// unmark records that nothing of item is to be written. The caller puts it somewhere.
func (s *Schedule[T]) unmark(item T) {
	if item.Slot().pending != 0 {
		s.namespaces[item.Namespace()].pending.Remove(item)
	}
}

// Ready says that a request for item should be made by the time due. Items go in the order of
// their due times, but one that has failed waits until its back-off ends, and is due later.
// An item that is ready already keeps the earlier of both due times. One in flight stays there.
func (s *Schedule[T]) Ready(item T, due, now time.Duration) {
	s.now = now
	slot := item.Slot()
	if slot.pending == 0 {
		s.namespace(item.Namespace()).pending.Put(item, now)
	} else if slot.in != nil && slot.due <= due {
		return
	}
	slot.due = due
	s.place(item)
}

// place puts an item with something to write where it belongs.
func (s *Schedule[T]) place(item T) {
	n, slot := s.namespaces[item.Namespace()], item.Slot()
	if s.hurried {
		slot.until = min(slot.until, s.now+SlowAfter)
	}
	switch {
	case slot.until != 0 && slot.until > s.now:
		s.put(item, &s.held, slot.until)
	case slot.kind() == fresh:
		s.put(item, &n.lanes[fresh].items, slot.due)
	default: // fewer failures first
		s.put(item, &n.lanes[tried].items, slot.until+later*time.Duration(min(slot.Failures(), 8)))
	}
}

// put moves item to a queue, or to none, unless it is in flight.
func (s *Schedule[T]) put(item T, q *Queue[T], at time.Duration) {
	if !s.InFlight(item) {
		move(item, &item.Slot().in, q, at)
	}
	if n := s.namespaces[item.Namespace()]; n != nil {
		s.plan(n)
	}
}

// Release ends the delay of item, and lets retries fail in a row once more. A pause of its
// namespace stays.
func (s *Schedule[T]) Release(item T, now time.Duration) {
	s.now = now
	slot := item.Slot()
	slot.until = now // and no earlier, so it is due after what has not failed
	if slot.pending != 0 {
		n := s.namespaces[item.Namespace()]
		n.retries, n.interval, n.retryAt = 0, 0, never
		s.place(item)
	}
}

// InFlight reports whether a request for item is in flight.
func (s *Schedule[T]) InFlight(item T) bool { return item.Slot().in == &s.flights }

// Due returns an item whose time to wait is over, and makes it idle.
func (s *Schedule[T]) Due(now time.Duration) (item T, ok bool) {
	if ok = s.waiting.earliest() <= now; ok {
		item = s.waiting.First()
		s.put(item, nil, 0)
	}
	return item, ok
}

// Next returns the item that takes the next request, and puts it in flight: [Schedule.Done]
// must follow. ok is false if no request can be made now.
func (s *Schedule[T]) Next(now time.Duration) (item T, ok bool) {
	s.advance(now)
	if !s.canStart() {
		return item, false
	}
	l := s.nextLane()
	item = l.items.First()
	l.turn = now + 1
	l.inFlight++
	s.quick++
	s.put(item, &s.flights, now+SlowAfter)
	return item, true
}

func (s *Schedule[T]) canStart() bool {
	return s.likely.Len()+s.unlikely.Len() > 0 && s.quick < s.places
}

// nextLane returns the lane of the next request. What will probably pass goes first, but after some of these requests, one goes that
// is due and less likely to pass. A shutdown follows the order alone.
func (s *Schedule[T]) nextLane() *lane[T] {
	likely, unlikely := s.likely.earliest(), s.unlikely.earliest()
	if s.likely.Len() == 0 || s.hurried && unlikely < likely || !s.hurried && s.inRow >= others && unlikely <= max(likely, s.now+1) {
		s.inRow = 0
		return s.unlikely.First()
	}
	s.inRow++
	return s.likely.First()
}

// advance does what is due by now.
func (s *Schedule[T]) advance(now time.Duration) {
	s.now = now
	for s.held.earliest() <= now {
		s.place(s.held.First())
	}
	for s.flights.earliest() <= now {
		item := s.flights.First()
		n := s.namespaces[item.Namespace()]
		s.flights.Put(item, Never)
		s.quick--
		n.slow++
		n.wasSlow = true
		s.plan(n)
	}
	for s.paced.earliest() <= now {
		s.plan(s.paced.First().namespace)
	}
}

// Cancel takes back [Schedule.Next]: no request was made for item, which is idle then.
func (s *Schedule[T]) Cancel(item T, now time.Duration) {
	n, _ := s.land(item, now)
	s.plan(n)
}

// Done takes the response to the request for an item that [Schedule.Next] has returned. The
// item is idle then: the caller calls [Schedule.Ready], Wait or Remove.
func (s *Schedule[T]) Done(item T, a Answer, now time.Duration) {
	n, wasSlow := s.land(item, now)
	slot := item.Slot()
	n.answer(slot.kind(), a, wasSlow, now, s.jitter)
	own := &slot.failed
	if a.Outcome.Handled() { // a server that starts denies requests until it knows the roles: that is another back-off
		own = &slot.Handled
	}
	if *own = min(*own, math.MaxUint8-1) + 1; a.Outcome.Passed() {
		slot.Handled, slot.failed = 0, 0
	}
	slot.Last, slot.until = a.Outcome, 0
	if delay := cmp.Or(a.Delay, a.Outcome.Delay(*own)); delay > 0 {
		slot.until = now + s.jitter(delay)
	}
	if left := s.patience - s.Waited(item, now); left > 0 {
		slot.until = min(slot.until, now+left)
	}
	s.plan(n)
}

// land takes item out of flight, and returns its namespace, and whether the request took long.
func (s *Schedule[T]) land(item T, now time.Duration) (n *namespace[T], wasSlow bool) {
	s.advance(now)
	n, wasSlow = s.namespaces[item.Namespace()], s.flights.At(item) == Never
	n.lanes[item.Slot().kind()].inFlight--
	if wasSlow {
		n.slow--
	} else {
		s.quick--
	}
	move(item, &item.Slot().in, nil, 0)
	return n, wasSlow
}

// Hurry is for a shutdown. Delays, also those that last, are at most 100 ms from now on, and
// retries have no interval. There are MaxPlaces places. Pauses stay. New items of healthy namespaces go first, then other new ones,
// then retries, and namespaces in which something takes long go last.
func (s *Schedule[T]) Hurry(now time.Duration) {
	s.advance(now)
	s.hurried = true
	s.places = max(s.places, MaxPlaces)
	for _, name := range slices.Sorted(maps.Keys(s.namespaces)) {
		for _, node := range s.namespaces[name].pending.nodes {
			s.place(node.item)
		}
	}
}

// Wake returns when [Schedule.Due] has a result, and a time before which [Schedule.Next] has
// none if nothing else happens. If that time has come, it has one. Each is [Never] if there is no
// such time.
func (s *Schedule[T]) Wake(now time.Duration) (due, request time.Duration) {
	s.advance(now)
	if s.canStart() {
		return s.waiting.earliest(), now
	}
	return s.waiting.earliest(), min(s.held.earliest(), s.paced.earliest(), s.flights.earliest())
}

// Backlog returns the number of items with something to write, wherever they are, how many of these are new or
// in namespaces that are paused, and since when the first has it, now if there is none. It takes time for each namespace.
func (s *Schedule[T]) Backlog(now time.Duration) (pending, hopeful int, since time.Duration) {
	since = now
	for _, n := range s.namespaces {
		pending += n.pending.Len()
		if hopeful += n.lanes[fresh].items.Len() + n.lanes[fresh].inFlight; n.until > now {
			hopeful += n.pending.Len()
		}
		since = min(since, n.pending.earliest())
	}
	return pending, hopeful, since
}

// Waited returns for how long an item has had something to write, zero if it has nothing.
func (s *Schedule[T]) Waited(item T, now time.Duration) time.Duration {
	if item.Slot().pending == 0 {
		return 0
	}
	return now - s.namespaces[item.Namespace()].pending.At(item)
}

// Namespace is what waits in a namespace.
type Namespace struct {
	Name        string
	Waiting     int           // items with something to write
	LongestWait time.Duration // of the first of these
	Failures    int           // requests in a row that have failed
	Slow        int           // requests in flight that take long
	Pause       time.Duration // for how long the server wants no request; negative: none since
}

// Sick returns the namespaces in which something waits, and which are sick or paused: at most a number
// of them, those first that have waited longest.
func (s *Schedule[T]) Sick(most int, now time.Duration) (sick []Namespace) {
	for _, n := range s.namespaces {
		if n.pending.Len() > 0 && (n.failures > 0 || n.isSlow() || n.until > now) {
			sick = append(sick, Namespace{n.name, n.pending.Len(), now - n.pending.earliest(), n.failures, n.slow, max(n.until, never/2) - now})
		}
	}
	slices.SortFunc(sick, func(a, b Namespace) int {
		return cmp.Or(cmp.Compare(b.LongestWait, a.LongestWait), cmp.Compare(a.Name, b.Name))
	})
	return sick[:min(most, len(sick))]
}

// Failed returns items of a namespace that have failed, and have had something to write since the given
// time or longer: at most a number of them, and none that is in flight. It takes time for what has waited for as long.
func (s *Schedule[T]) Failed(namespace string, before time.Duration, most int) (items []T) {
	n := s.namespaces[namespace]
	if n == nil {
		return nil
	}
	n.pending.each(0, before, func(item T) (more bool) {
		if item.Slot().kind() == tried && !s.InFlight(item) {
			items = append(items, item)
		}
		return len(items) < most
	})
	return items
}
