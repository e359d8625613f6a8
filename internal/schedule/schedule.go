package schedule

import (
	"cmp"
	"math"
	"time"
)

// Several is the number of requests in a row that must fail in a namespace before the
// namespace is to blame and not the items.
const Several = 16

// Delays double from the first to the longest with each failure in a row.
const (
	pauseFirst, pauseMax = 5 * time.Second, 5 * time.Minute // of the server
	pauseGuess           = 40 * time.Second                 // the longest, if it does not ask for more
	retryFirst, retryMax = time.Second, 2 * time.Minute     // of an item, and between retries
	retryBurst           = 10
	deniedMax            = 5 * time.Minute  // of an item that the server denies
	deniedLong           = 40 * time.Minute // after deniedOften in a row, which take an hour and a half
	deniedOften          = 24
	hurriedMax           = 100 * time.Millisecond
)

const (
	later    = 5 * time.Minute // how much later is due what has failed, or waits where something has
	maxLater = 8               // for how many failures at most
	pace     = time.Second / 2 // between two requests of a namespace, after Several failures
	maxIdle  = 1000            // namespaces up to which one with nothing to do is remembered

	// The requests in flight of a sick namespace, those of them for items that have failed, and
	// those of all sick namespaces, which can take until their timeouts. One that takes longer
	// than flightCounts does not count: whoever makes it hangs.
	maxSick, maxSickRetries, maxAllSick = 2, 1, 16
	flightCounts                        = time.Minute
)

// Item is an element of a [Schedule]: usually a pointer to a struct with a [Slot].
type Item[T any] interface {
	comparable
	Slot() *Slot[T]    // the place of the item, always at the same address
	Namespace() string // of the requests for the item, always the same
}

// Slot is the place of an item in a [Schedule], and its failures, which only the Schedule
// changes. The zero value means that the item is idle and has not failed.
type Slot[T any] struct {
	Failures uint8  // requests in a row that have failed, at most 255
	Alike    uint8  // of these, the latest with the result Last and the reason Reason
	Last     Result // of the latest request, if it has failed
	Reason   uint8  // of the latest request, see Response

	// Of the request in flight:
	kind  uint8
	probe bool // it probes whether the pause of the server is over
	slow  bool // it takes long

	index   int32         // in the queue in
	pending int32         // in Schedule.pending; zero if nothing is to be written
	in      *Queue[T]     // the queue that holds the item, nil if it is idle
	until   time.Duration // when its back-off ends, if it has failed
	due     time.Duration // see Schedule.Ready
}

func (s *Slot[T]) isDeniedOften(n uint8) bool { return s.Last == Denied && s.Alike > n }

// fail records that a request has failed, and returns for how long the item waits.
func (s *Slot[T]) fail(r Response, jitter func(time.Duration) time.Duration) time.Duration {
	if s.Last != r.Result || s.Reason != r.Reason {
		s.Last, s.Reason, s.Alike = r.Result, r.Reason, 0
	}
	s.Alike = min(s.Alike, math.MaxUint8-1) + 1
	s.Failures = min(s.Failures, math.MaxUint8-1) + 1
	first, longest, failures := retryFirst, cmp.Or(r.Most, retryMax), s.Failures
	switch {
	case s.Last == Refused:
		first, failures = cmp.Or(r.Least, retryFirst), s.Alike
	case s.isDeniedOften(deniedOften):
		first, longest = deniedLong, deniedLong
	case s.Last == Denied:
		longest = deniedMax
	}
	return max(r.Least, jitter(backoff(first, longest, failures)))
}

func backoff(first, longest time.Duration, failures uint8) time.Duration {
	for ; failures > 1 && first < longest; failures-- {
		first *= 2
	}
	return min(first, longest)
}

// Result is what the response to a request means.
type Result uint8

const (
	None       Result = iota // no request was made
	Passed                   // the server handled the request
	PushedBack               // the server asks for fewer requests
	Failed                   // the server could not handle the request, or did not respond
	Denied                   // the server does not permit the request
	Refused                  // the request failed because of its item alone, such as what it contains
)

// Response is what became of a request.
type Response struct {
	Result     Result
	Reason     uint8         // tells failures with the same result apart, for the caller and in Slot.Alike
	RetryAfter time.Duration // for how long the server wants no request, if PushedBack; zero: it does not say
	Least      time.Duration // the item waits at least this long, if its request has failed. If Refused, the first delay
	Most       time.Duration // the longest delay, unless Denied; zero: 2 minutes
}

// Schedule decides which item takes the next request. Each item is in one place: idle;
// waiting until a time; held until its back-off ends; ready; or in flight.
//
// Times are distances from an epoch that the caller chooses, and do not decrease. A Schedule
// starts no goroutine and reads no clock; the same calls have the same results. It is not
// safe for concurrent use. Make one with [New].
type Schedule[T Item[T]] struct {
	jitter  func(time.Duration) time.Duration
	hurried bool          // see Hurry
	now     time.Duration // of the latest call

	waiting Queue[T] // by the time until which they wait
	held    Queue[T] // by the end of their back-off
	flights Queue[T] // by the time until which they count, then never
	pending Queue[T] // items with something to write, by the time since when, wherever they are

	namespaces map[string]*namespace[T]
	ready      [2][2]Queue[*namespace[T]] // with a request to make, by due: by kind, and whether they are sick
	paced      Queue[*namespace[T]]       // by the time of their next request
	allSick    int                        // requests that count of sick namespaces

	server pause
	budget budget
}

// New returns an empty Schedule. It applies jitter to the delays after failed requests,
// unless jitter is nil.
func New[T Item[T]](jitter func(time.Duration) time.Duration) *Schedule[T] {
	if jitter == nil {
		jitter = func(d time.Duration) time.Duration { return d }
	}
	items := NewQueue(func(item T) *int32 { return &item.Slot().index })
	first := NewQueue(func(n *namespace[T]) *int32 { return &n.index[0] })
	second := NewQueue(func(n *namespace[T]) *int32 { return &n.index[1] })
	return &Schedule[T]{
		jitter: jitter, waiting: items, held: items, flights: items,
		pending:    NewQueue(func(item T) *int32 { return &item.Slot().pending }),
		namespaces: make(map[string]*namespace[T]),
		ready:      [2][2]Queue[*namespace[T]]{{first, first}, {second, second}},
		paced:      first,
		budget:     newBudget(retryFirst),
	}
}

// namespace returns the namespace with this name, and remembers it.
func (s *Schedule[T]) namespace(name string) *namespace[T] {
	n := s.namespaces[name]
	if n == nil {
		items := NewQueue(s.waiting.index)
		n = &namespace[T]{name: name, ready: [2]Queue[T]{items, items}}
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
		s.pending.Remove(item)
		s.namespaces[item.Namespace()].pending--
	}
}

// Ready says that a request for item should be made by the time due. Items go in the order of
// their due times, but one that has failed waits until its back-off ends, and is due later.
// An item that is ready already keeps the earlier of both due times. One in flight stays there.
func (s *Schedule[T]) Ready(item T, due, now time.Duration) {
	s.now = now
	slot := item.Slot()
	if slot.pending == 0 {
		s.pending.Put(item, now)
		s.namespace(item.Namespace()).pending++
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
		slot.until = min(slot.until, s.now+hurriedMax)
	}
	switch {
	case slot.pending == 0:
	case slot.Last == None:
		s.put(item, &n.ready[fresh], slot.due-n.shift)
	case slot.until > s.now:
		s.put(item, &s.held, slot.until)
	default: // fewer failures first
		s.put(item, &n.ready[tried], max(slot.due, slot.until+later*time.Duration(min(slot.Failures, maxLater))))
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

// Release ends the back-off of item. Its namespace and the budget can still hold it up.
func (s *Schedule[T]) Release(item T, now time.Duration) {
	s.now = now
	if slot := item.Slot(); slot.Last != None {
		slot.until = min(slot.until, now)
		s.place(item)
	}
}

// InFlight reports whether a request for item is in flight.
func (s *Schedule[T]) InFlight(item T) bool { return item.Slot().in == &s.flights }

// Due returns an item whose time to wait is over, and makes it idle.
func (s *Schedule[T]) Due(now time.Duration) (item T, ok bool) {
	if s.waiting.Len() == 0 || s.waiting.first() > now {
		return item, false
	}
	item = s.waiting.First()
	s.put(item, nil, 0)
	return item, true
}

// Next returns the item that takes the next request, and puts it in flight: [Schedule.Done]
// must follow. ok is false if no request can be made now.
func (s *Schedule[T]) Next(now time.Duration) (item T, ok bool) {
	s.advance(now)
	n, kind, at := s.best()
	if at > now || s.server.on && (s.server.probing || now < s.server.until) {
		return item, false
	}
	if kind == tried {
		s.budget.take(now)
	}
	item = n.ready[kind].First()
	slot := item.Slot()
	slot.kind, slot.probe, slot.slow = uint8(kind), s.server.on, false
	n.next = now + pace
	n.count(1, kind)
	s.put(item, &s.flights, now+flightCounts)
	s.server.probing = s.server.on
	return item, true
}

// best returns the namespace of the next request, the kind of its item, and when it can be
// made, or never. The earliest due goes first; the request that probes whether a pause is over
// is the most promising one.
func (s *Schedule[T]) best() (n *namespace[T], kind int, at time.Duration) {
	at = never
	var due time.Duration
	for i := range 4 {
		k, sick, from := i/2, i%2, s.now
		q := &s.ready[k][sick]
		if k == tried {
			from = max(s.now, s.budget.at)
		}
		switch {
		case q.Len() == 0, sick == 1 && s.allSick >= maxAllSick && !s.hurried:
		case from < at, from == at && q.first() < due && !s.server.on:
			n, kind, at, due = q.First(), k, from, q.first()
		}
	}
	return n, kind, at
}

// advance does what is due by now.
func (s *Schedule[T]) advance(now time.Duration) {
	s.now = now
	for s.held.first() <= now {
		s.place(s.held.First())
	}
	for s.paced.first() <= now {
		s.plan(s.paced.First())
	}
	for s.flights.first() <= now {
		item := s.flights.First()
		s.flights.Put(item, never)
		n := s.namespaces[item.Namespace()]
		n.count(-1, int(item.Slot().kind))
		s.plan(n)
	}
}

// Done takes the response to the request for an item that [Schedule.Next] has returned. The
// item is idle then: the caller calls [Schedule.Ready], Wait or Remove.
func (s *Schedule[T]) Done(item T, r Response, now time.Duration) {
	s.now = now
	slot, n := item.Slot(), s.namespace(item.Namespace())
	kind := int(slot.kind)
	if s.flights.At(item) != never {
		n.count(-1, kind)
	}
	if slot.slow {
		n.slow--
	}
	move(item, &slot.in, nil, 0)
	s.server.answer(n.name, slot.probe, slot.slow, r, s.jitter, now)
	s.budget.answer(kind == tried, r.Result, now)
	switch r.Result {
	case None:
	case Passed:
		n.failures, n.passed = 0, true
		if slot.isDeniedOften(Several) {
			s.encourage(n.name)
		}
		slot.Failures, slot.Alike, slot.Last = 0, 0, None
	default:
		slot.until = now + slot.fail(r, s.jitter)
		if r.Result != Refused {
			n.fail(kind, now)
		}
	}
	s.plan(n)
}

// encourage has the items of a namespace that have been denied for long tried soon: one like
// them has passed. If one is denied nevertheless, it waits for as long as before.
func (s *Schedule[T]) encourage(namespace string) {
	for _, q := range [...]*Queue[T]{&s.pending, &s.waiting} {
		for _, node := range q.nodes {
			if slot := node.item.Slot(); slot.isDeniedOften(deniedOften) && node.item.Namespace() == namespace {
				slot.until = min(slot.until, s.now+s.jitter(deniedMax))
				s.place(node.item)
			}
		}
	}
}

// Slow says that the request in flight for item takes long: perhaps all requests for its
// namespace do.
func (s *Schedule[T]) Slow(item T, now time.Duration) {
	s.now = now
	if slot := item.Slot(); !slot.slow {
		slot.slow = true
		s.server.probing = s.server.probing && !slot.probe
		n := s.namespace(item.Namespace())
		n.slow++
		s.plan(n)
	}
}

// Hurry is for a shutdown. Back-offs, also those that last, are at most 100 ms from now on, and
// requests have no rate. Bulkheads and a pause of the server stay.
func (s *Schedule[T]) Hurry(now time.Duration) {
	s.now, s.hurried, s.budget = now, true, newBudget(0)
	for _, node := range s.pending.nodes {
		s.place(node.item)
	}
}

// NextDue returns when [Schedule.Due] has a result. ok is false if no item waits.
func (s *Schedule[T]) NextDue() (at time.Duration, ok bool) {
	return s.waiting.first(), s.waiting.Len() > 0
}

// NextRequest returns the time before which [Schedule.Next] has no result if nothing else
// happens. If that time has come, it has one. ok is false if there is no such time.
func (s *Schedule[T]) NextRequest(now time.Duration) (at time.Duration, ok bool) {
	s.advance(now)
	_, _, at = s.best()
	at = min(at, max(s.held.first(), s.budget.at), s.paced.first())
	if ready, _, _ := s.Backlog(); ready > 0 {
		at = min(at, s.flights.first()) // it no longer counts then
	}
	if s.server.on {
		at = max(at, s.server.until)
	}
	return at, at != never && !s.server.probing
}

// Backlog returns the number of items whose request can be made when their namespace, the
// budget and the server permit it, the number of all with something to write, wherever they
// are, and since when the first of these has it.
func (s *Schedule[T]) Backlog() (ready, pending int, since time.Duration) {
	ready = s.pending.Len() - s.held.Len()
	for _, node := range s.flights.nodes {
		ready -= int(min(node.item.Slot().pending, 1))
	}
	if s.pending.Len() > 0 {
		since = s.pending.first()
	}
	return ready, s.pending.Len(), since
}

// Pause returns until when the server wants no requests, and the total of all pauses. ok is
// false if there is none now.
func (s *Schedule[T]) Pause(now time.Duration) (until, total time.Duration, ok bool) {
	total = s.server.total
	if s.server.on {
		total += now - s.server.since
	}
	return s.server.until, total, s.server.on
}

// Failures returns how many requests of a namespace have failed in a row.
func (s *Schedule[T]) Failures(namespace string) int { return s.namespace(namespace).failures }

// PendingSince returns the items of a namespace that have had something to write since the
// given time or longer, and are not in flight.
func (s *Schedule[T]) PendingSince(namespace string, before time.Duration) (items []T) {
	if s.pending.first() > before {
		return nil
	}
	for _, n := range s.pending.nodes {
		if n.at <= before && !s.InFlight(n.item) && n.item.Namespace() == namespace {
			items = append(items, n.item)
		}
	}
	return items
}
