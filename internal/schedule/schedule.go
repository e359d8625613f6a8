package schedule

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Several requests are no accident: if so many in a row fail in a namespace, it is to blame and not the
// items, and if so many take long, the server is.
const Several = 16

// Delays double from RetryFirst to the longest with each failure in a row.
const (
	RetryFirst  = time.Second      // also a turn: see lane.order, and namespace.pace
	RetryMax    = 80 * time.Second // of an item, and between retries of a namespace and of all
	pushedMax   = 16 * time.Second // after a push-back, which can concern a share of the requests
	deniedMax   = 5 * time.Minute  // of an item that the server denies
	deniedLong  = 40 * time.Minute // after deniedOften in a row, which take an hour and a half
	deniedOften = 24
)

var longest = [...]time.Duration{Failed: RetryMax, PushedBack: pushedMax, Denied: deniedMax, Refused: RetryMax}

// FreeRetries is the number of retries of a namespace that may fail in a row before that means something,
// and others wait for more than their items.
const FreeRetries = 3

// Burst is the number of requests that may come together: no server notices them. So many retries of all
// with recent failures may fail in a row before others wait. Of those with older ones, it is one.
const Burst = 10

// later is by how much what is less likely to pass is due later: by the longest usual delay.
const later = deniedMax

// MaxRemembered bounds each memory of what a program can make up for ever, such as namespaces: from so
// many on, idle ones are forgotten.
const MaxRemembered = 10_000

// MaxPlaces is the number of places at the end of a shutdown. With responses after 100 ms, 2,500
// series can be written in ten seconds, instead of 360. No process needs more before.
const MaxPlaces = 32

// Requests that take longer than SlowAfter leave their places to others, up to MaxSlow of them.
// While Several do, namespaces that probably hang make none, and others one at a time. A
// request that takes HangsAfter longer may stop counting: see Schedule.advance.
const (
	SlowAfter  = 100 * time.Millisecond
	HangsAfter = time.Minute
	MaxSlow    = 100
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

	slow bool // the request in flight takes long

	index   int32         // in the queue in, plus one
	pending int32         // in namespace.pending, plus one; zero if nothing is to be written
	in      *Queue[T]     // the queue that holds the item, nil if it is idle
	until   time.Duration // when its back-off ends, if it has failed
	due     time.Duration // see Schedule.Ready
}

// kind returns the kind of an item. It is the same from Next to Done.
func (s *Slot[T]) kind() kind { return kind(min(s.Failures, 1)) }

func (s *Slot[T]) isDeniedOften() bool { return s.Last == Denied && s.Alike > deniedOften }

// fail records that a request has failed, and returns for how long the item waits.
func (s *Slot[T]) fail(r Response, jitter func(time.Duration) time.Duration) time.Duration {
	if s.Last != r.Result || s.Reason != r.Reason {
		s.Last, s.Reason, s.Alike = r.Result, r.Reason, 0
	}
	s.Alike = min(s.Alike, math.MaxUint8-1) + 1
	s.Failures = min(s.Failures, math.MaxUint8-1) + 1
	first, most, failures := RetryFirst, cmp.Or(r.Most, longest[s.Last]), s.Failures
	switch {
	case s.Last == Refused:
		first, failures = cmp.Or(r.Least, RetryFirst), s.Alike
	case s.isDeniedOften():
		return deniedLong // exactly: see place
	}
	return max(r.Least, jitter(backoff(first, most, failures)))
}

// Delay returns for how long to wait after so many failures in a row: from RetryFirst, after one, to RetryMax.
func Delay(failures uint8) time.Duration { return backoff(RetryFirst, RetryMax, failures) }

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
	PushedBack               // the server asks for fewer requests of the namespace
	Failed                   // the server could not handle the request, or did not respond
	Denied                   // the server does not permit the request
	Refused                  // the request failed because of its item alone, such as what it contains
)

// Response is what became of a request.
type Response struct {
	Result     Result
	Reason     uint8         // tells failures with the same result apart, for the caller and in Slot.Alike
	RetryAfter time.Duration // for how long the server wants no request of the namespace, if PushedBack; zero: it does not say
	Least      time.Duration // the item waits at least this long, if its request has failed, up to 40 minutes. If Refused, the first delay
	Most       time.Duration // the longest delay; zero: 80 seconds, 16 seconds if PushedBack, 5 minutes if Denied
}

// Schedule decides which item takes the next request. Each item is in one place: idle;
// waiting until a time; held until its back-off ends; ready; or in flight.
//
// Times are distances from an epoch that the caller chooses, and do not decrease. A Schedule
// starts no goroutine and reads no clock; the same calls have the same results. It is not
// safe for concurrent use. Make one with [New].
type Schedule[T Item[T]] struct {
	jitter  func(time.Duration) time.Duration
	places  int           // requests in flight that do not take long, at most
	now     time.Duration // of the latest call
	hurried bool          // see Hurry
	extra   int           // places, in a shutdown: one for each request that the server has handled

	waiting Queue[T] // by the time until which they wait
	held    Queue[T] // by the end of their back-off, or when to look again whether it is over
	flights Queue[T] // by when they take long, then by when they can hang, then Never

	namespaces map[string]*namespace[T]
	ready      [2 * classes]Queue[*lane[T]] // with a request to make, by class; then those of namespaces that hang
	paced      Queue[*lane[T]]              // by when the next request can be made
	pending    int                          // items with something to write
	quick      int                          // requests in flight that do not take long
	slow       int                          // those that do, without those that hang
	throttles  [classes]throttle            // of retries of all
}

// New returns an empty Schedule with room for so many requests in flight. Up to [MaxSlow] others
// that take long do not count, nor do those that hang. The Schedule applies jitter to the delays
// after failed requests, unless jitter is nil.
func New[T Item[T]](places int, jitter func(time.Duration) time.Duration) *Schedule[T] {
	if jitter == nil {
		jitter = func(d time.Duration) time.Duration { return d }
	}
	items := NewQueue(func(item T) *int32 { return &item.Slot().index })
	lanes := NewQueue(func(l *lane[T]) *int32 { return &l.index })
	s := &Schedule[T]{
		jitter: jitter, places: places, waiting: items, held: items, flights: items,
		namespaces: make(map[string]*namespace[T]), paced: lanes,
	}
	for i := range s.ready {
		s.ready[i] = lanes
	}
	for class := range s.throttles {
		s.throttles[class] = throttle{free: 1, first: longestOfAll(class)}
	}
	s.throttles[recent] = throttle{free: Burst, first: RetryFirst}
	return s
}

// namespace returns the namespace with this name, and remembers it.
func (s *Schedule[T]) namespace(name string) *namespace[T] {
	n := s.namespaces[name]
	if n == nil {
		n = newNamespace(name, NewQueue(s.waiting.index), NewQueue(func(item T) *int32 { return &item.Slot().pending }))
		s.namespaces[name] = n
	}
	return n
}

// forget forgets a namespace that is idle, while there are many. One that is paused is not.
func (s *Schedule[T]) forget(n *namespace[T]) {
	if n.pending.Len() == 0 && n.inFlight() == 0 && n.hangs == 0 && n.until <= s.now && len(s.namespaces) > MaxRemembered {
		delete(s.namespaces, n.name)
	}
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
		s.pending--
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
		s.pending++
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
		slot.until = min(slot.until, s.now+SlowAfter)
	case slot.isDeniedOften() && n.permitted > slot.until-deniedLong: // since it was denied
		slot.until = min(slot.until, s.now)
	}
	switch {
	case slot.kind() == fresh:
		s.put(item, &n.lanes[fresh].items, slot.due-n.shift)
	case slot.until > s.now && slot.isDeniedOften():
		s.put(item, &s.held, min(slot.until, s.now+deniedMax))
	case slot.until > s.now:
		s.put(item, &s.held, slot.until)
	default: // fewer failures first
		s.put(item, &n.lanes[tried].items, slot.until+min(later*time.Duration(slot.Failures), deniedLong))
	}
}

// put moves item to a queue, or to none, unless it is in flight.
func (s *Schedule[T]) put(item T, q *Queue[T], at time.Duration) {
	if !s.InFlight(item) {
		move(item, &item.Slot().in, q, at)
	}
	if n := s.namespaces[item.Namespace()]; n != nil {
		s.plan(n)
		s.forget(n)
	}
}

// Release ends the back-off of item, and lets retries fail in a row once more. A pause of its
// namespace stays.
func (s *Schedule[T]) Release(item T, now time.Duration) {
	s.now = now
	slot := item.Slot()
	slot.until = now // and no earlier, so it is due after what has not failed
	if slot.pending != 0 {
		n := s.namespaces[item.Namespace()]
		n.throttle.failures, n.lanes[tried].class = 0, first
		for class := range s.throttles {
			s.throttles[class].failures = 0
		}
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
	l, at := s.best()
	if at > now {
		return item, false
	}
	item = l.items.First()
	slot := item.Slot()
	slot.slow = false
	l.pace = now + RetryFirst/2
	if l.class >= first {
		s.throttles[l.class].take(now, longestOfAll(l.class), s.jitter)
		l.throttle.take(now, longest[slot.Last], s.jitter)
	}
	l.flying++
	s.quick++
	s.put(item, &s.flights, now+SlowAfter)
	return item, true
}

// best returns the lane of the next request, and when it can be made, or Never. The earliest due
// goes first. A shutdown follows the classes.
func (s *Schedule[T]) best() (best *lane[T], at time.Duration) {
	at = Never
	if s.quick+max(0, s.slow-MaxSlow) >= s.places+s.extra {
		return nil, at
	}
	due := at
	for i := range s.ready {
		q, from := &s.ready[i], s.now
		for q.Len() > 0 && q.First().agesAt() <= s.now { // it joins one of the next queues
			q.First().classify(s.now)
			s.plan(q.First().namespace)
		}
		if q.Len() == 0 || i >= classes && s.isCrowded() {
			continue
		}
		if !s.hurried {
			from = max(from, min(s.throttles[i%classes].at(), q.First().agesAt()))
		}
		if from < at || from == at && !s.hurried && q.first() < due {
			best, at, due = q.First(), from, q.first()
		}
	}
	return best, at
}

// isCrowded reports whether so many requests take long that few others shall.
func (s *Schedule[T]) isCrowded() bool { return s.slow >= Several && !s.hurried }

// advance does what is due by now.
func (s *Schedule[T]) advance(now time.Duration) {
	s.now = now
	for s.held.first() <= now {
		s.place(s.held.First())
	}
	for at := s.flights.first(); at <= now; at = s.flights.first() {
		item := s.flights.First()
		n, slot := s.namespaces[item.Namespace()], item.Slot()
		switch {
		case !slot.slow:
			s.flights.Put(item, at+HangsAfter)
			slot.slow = true
			n.slow++
			s.slow++
			s.quick--
		case n.hangs == 0 || at >= n.hangsNext:
			n.hangsNext = at + HangsAfter<<n.hangs
			s.discount(item)
		default:
			s.flights.Put(item, n.hangsNext)
		}
		s.plan(n)
	}
	for s.paced.first() <= now {
		n := s.paced.First().namespace
		s.plan(n)
		s.forget(n)
	}
}

// discount stops counting a request that takes long as in flight.
func (s *Schedule[T]) discount(item T) {
	n := s.namespaces[item.Namespace()]
	s.flights.Put(item, Never)
	s.land(n, item.Slot())
	n.hung = n.hung || n.hangs > 0 // one alone says nothing about the next
	n.hangs++
}

// land stops counting a request of n that does not hang.
func (s *Schedule[T]) land(n *namespace[T], slot *Slot[T]) {
	n.lanes[slot.kind()].flying--
	if slot.slow {
		n.slow--
		s.slow--
	} else {
		s.quick--
	}
}

// Done takes the response to the request for an item that [Schedule.Next] has returned. The
// item is idle then: the caller calls [Schedule.Ready], Wait or Remove.
func (s *Schedule[T]) Done(item T, r Response, now time.Duration) {
	s.now = now
	slot, n := item.Slot(), s.namespaces[item.Namespace()]
	k := slot.kind()
	if s.flights.At(item) == Never {
		n.hangs--
	} else {
		s.land(n, slot)
	}
	move(item, &slot.in, nil, 0)
	n.throttle.answer(k, r.Result, now)
	for class := range s.throttles {
		if k == fresh || class == max(n.lanes[tried].class, recent) {
			s.throttles[class].answer(k, r.Result, now)
		}
	}
	switch r.Result {
	case None:
	case Passed:
		n.failures, n.hung = 0, false
		if slot.Last == Denied {
			n.permitted = now
		}
		slot.Failures, slot.Alike, slot.Last = 0, 0, None
	case Refused:
		slot.until = now + slot.fail(r, s.jitter)
	default:
		slot.until = now + slot.fail(r, s.jitter)
		if n.failures++; n.failures == 1 {
			n.since = now
		}
		n.hung = n.hung || slot.slow
		if n.failures >= Several && n.lanes[fresh].items.Len() > 0 { // what waits may be alike: what arrives from now on goes first
			n.shift = max(n.shift, now+later-n.lanes[fresh].items.first())
		}
		if r.Result == PushedBack && r.RetryAfter > 0 {
			n.until = max(n.until, now+r.RetryAfter)
			slot.until = max(slot.until, n.until)
		}
	}
	switch {
	case r.Result == PushedBack:
		s.extra = 0
	case s.hurried && r.Result != None && r.Result != Failed:
		s.extra = max(s.extra, min(s.extra+1, MaxPlaces-s.places))
	}
	n.classify(now)
	s.plan(n)
	s.forget(n)
}

// Hurry is for a shutdown. Back-offs, also those that last, are at most 100 ms from now on, and
// requests have no rate. Each that the server handles makes place for one more, up to
// MaxPlaces, until it pushes back. Bulkheads and pauses stay, but what takes long already
// does not count, and namespaces in which something does go last.
func (s *Schedule[T]) Hurry(now time.Duration) {
	s.advance(now)
	s.hurried = true
	for _, item := range s.flights.AppendTo(nil) {
		if item.Slot().slow && s.flights.At(item) != Never {
			s.discount(item)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.namespaces)) {
		n := s.namespaces[name]
		n.hung = n.hung || n.hangs > 0
		for _, node := range n.pending.nodes {
			s.place(node.item)
		}
	}
}

// Wake returns when [Schedule.Due] has a result, and a time before which [Schedule.Next] has
// none if nothing else happens. If that time has come, it has one. Each is [Never] if there is no
// such time.
func (s *Schedule[T]) Wake(now time.Duration) (due, request time.Duration) {
	s.advance(now)
	_, request = s.best()
	return s.waiting.first(), min(request, s.held.first(), s.paced.first(), s.flights.first())
}

// Backlog returns the number of items with something to write, wherever they are, and since when the
// first of these has it, now if there is none. It takes time for each namespace.
func (s *Schedule[T]) Backlog(now time.Duration) (pending int, since time.Duration) {
	since = now
	for _, n := range s.namespaces {
		since = min(since, n.pending.first())
	}
	return s.pending, since
}

// Since returns since when an item has something to write, which it must have.
func (s *Schedule[T]) Since(item T) time.Duration {
	return s.namespaces[item.Namespace()].pending.At(item)
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

// Sick returns the namespaces in which something waits, and which are sick or paused: at most so
// many, those first that have waited longest.
func (s *Schedule[T]) Sick(most int, now time.Duration) (sick []Namespace) {
	for _, n := range s.namespaces {
		if n.pending.Len() > 0 && (n.isSick() || n.until > now) {
			sick = append(sick, Namespace{n.name, n.pending.Len(), now - n.pending.first(), n.failures, n.slow + n.hangs, max(n.until, never/2) - now})
		}
	}
	slices.SortFunc(sick, func(a, b Namespace) int {
		return cmp.Or(cmp.Compare(b.LongestWait, a.LongestWait), cmp.Compare(a.Name, b.Name))
	})
	return sick[:min(most, len(sick))]
}

// PendingSince returns the items of a namespace that have had something to write since the
// given time or longer, and are not in flight, and how many requests of the namespace have failed
// in a row. It takes time for these items alone.
func (s *Schedule[T]) PendingSince(namespace string, before time.Duration) (items []T, failures int) {
	n := s.namespaces[namespace]
	if n == nil {
		return nil, 0
	}
	n.pending.each(0, before, func(item T) {
		if !s.InFlight(item) {
			items = append(items, item)
		}
	})
	return items, n.failures
}
