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
	later    = 5 * time.Minute // a request that is less likely to pass is due this much later
	maxLater = 8               // for how many failures of its item at most
	turn     = time.Second     // for each request in flight, the next one of its namespace is due this much later
	pace     = time.Second / 2 // between two requests of a namespace, after Several failures
	maxIdle  = 1000            // idle namespaces are forgotten while there are more

	// The requests in flight of a sick namespace, and those of them for items that have failed.
	// While slowPlaces requests take long, sick namespaces make none, and others about one.
	maxSick, maxSickRetries, slowPlaces = 2, 1, 16
)

// SlowAfter is when a request takes long: perhaps all requests for its namespace do. Another
// hangsAfter later, it does not count as in flight: whoever makes it hangs.
const SlowAfter, hangsAfter = 100 * time.Millisecond, time.Minute

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

	probe, slow bool // the request in flight probes whether the server's pause is over; it takes long

	index   int32         // in the queue in, plus one
	pending int32         // in Schedule.pending, plus one; zero if nothing is to be written
	in      *Queue[T]     // the queue that holds the item, nil if it is idle
	until   time.Duration // when its back-off ends, if it has failed
	due     time.Duration // see Schedule.Ready
}

// kind returns the kind of an item: see namespace.ready. It is the same from Next to Done.
func (s *Slot[T]) kind() int { return int(min(s.Failures, 1)) }

func (s *Slot[T]) isDeniedOften() bool { return s.Last == Denied && s.Alike > deniedOften }

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
	case s.isDeniedOften():
		return deniedLong // exactly: see place
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
	Least      time.Duration // the item waits at least this long, if its request has failed, up to 40 minutes. If Refused, the first delay
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
	held    Queue[T] // by the end of their back-off, or when to look again whether it is over
	flights Queue[T] // by when they take long, then by when they hang, then Never
	pending Queue[T] // items with something to write, by the time since when, wherever they are

	namespaces map[string]*namespace[T]
	ready      [2][2]Queue[*namespace[T]] // with a request to make, by due: by kind, and whether they are sick
	paced      Queue[*namespace[T]]       // by the time of their next request
	slow       int                        // requests in flight that take long, except those that hang

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
	namespaces := NewQueue(func(n *namespace[T]) *int32 { return &n.index })
	return &Schedule[T]{
		jitter: jitter, waiting: items, held: items, flights: items,
		pending:    NewQueue(func(item T) *int32 { return &item.Slot().pending }),
		namespaces: make(map[string]*namespace[T]),
		ready:      [2][2]Queue[*namespace[T]]{{namespaces, namespaces}, {namespaces, namespaces}},
		paced:      namespaces,
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
	switch {
	case s.hurried:
		slot.until = min(slot.until, s.now+hurriedMax)
	case slot.isDeniedOften() && n.permitted > slot.until-deniedLong: // since it was denied
		slot.until = min(slot.until, s.now)
	}
	switch {
	case slot.kind() == fresh:
		s.put(item, &n.ready[fresh], slot.due-n.shift)
	case slot.until > s.now && slot.isDeniedOften():
		s.put(item, &s.held, min(slot.until, s.now+deniedMax))
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
	slot := item.Slot()
	if slot.until = min(slot.until, now); slot.pending != 0 {
		s.place(item)
	}
}

// InFlight reports whether a request for item is in flight.
func (s *Schedule[T]) InFlight(item T) bool { return item.Slot().in == &s.flights }

// Due returns an item whose time to wait is over, and makes it idle.
func (s *Schedule[T]) Due(now time.Duration) (item T, ok bool) {
	if ok = s.waiting.first() <= now; ok {
		item = s.waiting.First()
		s.put(item, nil, 0)
	}
	return item, ok
}

// Next returns the item that takes the next request, and puts it in flight: [Schedule.Done]
// must follow. ok is false if no request can be made now.
func (s *Schedule[T]) Next(now time.Duration) (item T, ok bool) {
	s.advance(now)
	n, kind, at := s.best()
	if at > now || s.server.on && (s.server.probing || now < s.server.until) {
		return item, false
	}
	if (kind == tried || s.isTriedDue(n)) && s.budget.take(now) {
		kind = tried
	}
	item = n.ready[kind].First()
	slot := item.Slot()
	slot.probe, slot.slow = s.server.on, false
	n.next = now + pace
	n.count(1, kind)
	s.put(item, &s.flights, now+SlowAfter)
	s.server.probing = s.server.on
	return item, true
}

// best returns the namespace of the next request, the kind of its item, and when it can be
// made, or Never. The earliest due goes first. In a shutdown, and to probe whether a pause of the
// server is over, new items of healthy namespaces do, then those of sick ones, then retries.
func (s *Schedule[T]) best() (n *namespace[T], kind int, at time.Duration) {
	at = Never
	var due time.Duration
	for i := range 4 {
		k, sick, from := i/2, i%2, s.now
		q := &s.ready[k][sick]
		if k == tried {
			from = s.budget.at(s.now)
		}
		switch {
		case q.Len() == 0, sick == 1 && s.slow >= slowPlaces && !s.hurried:
		case from < at, from == at && q.first() < due && !s.server.on && !s.hurried:
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
	for at := s.flights.first(); at <= now; at = s.flights.first() {
		item := s.flights.First()
		n, slot := s.namespaces[item.Namespace()], item.Slot()
		if slot.slow {
			s.flights.Put(item, Never)
			n.count(-1, slot.kind())
			s.slow--
		} else {
			s.flights.Put(item, at+hangsAfter)
			slot.slow = true
			n.slow++
			s.slow++
			s.server.probing = s.server.probing && !slot.probe // another one may
		}
		s.plan(n)
	}
}

// Done takes the response to the request for an item that [Schedule.Next] has returned. The
// item is idle then: the caller calls [Schedule.Ready], Wait or Remove.
func (s *Schedule[T]) Done(item T, r Response, now time.Duration) {
	s.now = now
	slot, n := item.Slot(), s.namespace(item.Namespace())
	kind := slot.kind()
	hangs := s.flights.At(item) == Never
	if !hangs {
		n.count(-1, kind)
	}
	if slot.slow {
		n.slow--
		if !hangs {
			s.slow--
		}
	}
	move(item, &slot.in, nil, 0)
	s.server.answer(n.name, slot.probe, slot.slow, r, s.jitter, now)
	s.budget.answer(kind == tried, r.Result, now)
	switch r.Result {
	case None:
	case Passed:
		n.failures = 0
		if slot.Last == Denied {
			n.permitted = now
		}
		slot.Failures, slot.Alike, slot.Last = 0, 0, None
	case Refused:
		slot.until = now + slot.fail(r, s.jitter)
	default:
		slot.until = now + slot.fail(r, s.jitter)
		n.failures++
		if n.failures > 1 && n.ready[fresh].Len() > 0 { // what waits may be alike: what arrives from now on goes first
			n.shift = max(n.shift, now+later-n.ready[fresh].first())
		}
	}
	s.plan(n)
}

// Hurry is for a shutdown. Back-offs, also those that last, are at most 100 ms from now on, and
// requests have no rate. Bulkheads and a pause of the server stay.
func (s *Schedule[T]) Hurry(now time.Duration) {
	s.now, s.hurried, s.budget = now, true, newBudget(0)
	for _, node := range s.pending.nodes {
		s.place(node.item)
	}
}

// Wake returns when [Schedule.Due] has a result, and a time before which [Schedule.Next] has
// none if nothing else happens. If that time has come, it has one. Each is [Never] if there is no
// such time.
func (s *Schedule[T]) Wake(now time.Duration) (due, request time.Duration) {
	s.advance(now)
	_, _, request = s.best()
	request = min(request, s.held.first(), s.paced.first(), s.flights.first())
	switch {
	case s.server.probing:
		request = s.flights.first() // it may take long
	case s.server.on:
		request = max(request, s.server.until)
	}
	return s.waiting.first(), request
}

// Backlog returns the number of items whose request can be made when their namespace, the
// budget and the server permit it, the number of all with something to write, wherever they
// are, and since when the first of these has it, [Never] if there is none.
func (s *Schedule[T]) Backlog() (ready, pending int, since time.Duration) {
	ready = s.pending.Len() - s.held.Len()
	for _, node := range s.flights.nodes {
		ready -= int(min(node.item.Slot().pending, 1))
	}
	return ready, s.pending.Len(), s.pending.first()
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

// PendingSince returns the items of a namespace that have had something to write since the
// given time or longer, and are not in flight, and how many requests of the namespace have failed
// in a row.
func (s *Schedule[T]) PendingSince(namespace string, before time.Duration) (items []T, failures int) {
	n := s.namespaces[namespace]
	if n == nil || s.pending.first() > before {
		return nil, 0
	}
	for _, node := range s.pending.nodes {
		if node.at <= before && !s.InFlight(node.item) && node.item.Namespace() == namespace {
			items = append(items, node.item)
		}
	}
	return items, n.failures
}
