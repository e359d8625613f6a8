package schedule

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// Item is an element of a [Schedule]: usually a pointer to a struct with a [Slot].
type Item[T any] interface {
	comparable

	// Slot returns the place of the item. It must return the same address each time, and the
	// Slot must belong to this item alone.
	Slot() *Slot[T]

	// Namespace returns the namespace of the requests for the item. It must not change.
	Namespace() string
}

// Slot is the place of an item in a [Schedule], which alone writes to it, and its failures.
// The zero value means that the item is idle and has not failed.
type Slot[T any] struct {
	in       *Queue[T]     // the queue that holds the item, nil if it is idle
	until    time.Duration // when its back-off ends, if it has failed
	due      time.Duration // see Schedule.Ready
	index    int32         // in that queue
	pending  int32         // in Schedule.pending; zero if nothing is to be written
	failures uint8         // in a row
	alike    uint8         // of these, the latest with the same result
	last     Result        // of the latest request, if it has failed
	isRetry  bool          // the request in flight was for an item that had failed
}

// Failures returns how many requests for the item have failed in a row, at most 255.
func (s *Slot[T]) Failures() int { return int(s.failures) }

// IsDenied reports whether the latest request for the item was Denied.
func (s *Slot[T]) IsDenied() bool { return s.last == Denied }

func (s *Slot[T]) hasFailed() bool { return s.last != None }

// rank orders items that have failed: fewer failures first, until the back-off has its limit.
func (s *Slot[T]) rank() uint8 { return min(s.failures, 8) }

func (s *Slot[T]) isDeniedOften(n uint8) bool { return s.IsDenied() && s.alike > n }

// forgive forgets all failures.
func (s *Slot[T]) forgive() { s.failures, s.alike, s.last = 0, 0, None }

func (s *Slot[T]) fail(result Result) {
	if s.last != result {
		s.alike = 0
	}
	s.last = result
	s.alike = min(s.alike, math.MaxUint8-1) + 1
	s.failures = min(s.failures, math.MaxUint8-1) + 1
}

// Pass is the right to make one request. See [Schedule.Next].
type Pass struct {
	namespace string
	round     uint16 // of the pause of the server when the request was made
	probe     bool   // the request probes whether the pause is over
	isRetry   bool   // its item had failed
	slow      bool   // it takes long
}

// Result is what the response to a request says.
type Result uint8

const (
	None       Result = iota // no request was made
	Passed                   // the server handled the request
	PushedBack               // the server asks for fewer requests
	Failed                   // the server could not handle the request, or did not respond
	Denied                   // the server does not permit the request
	Refused                  // the server rejects what the request contains
)

// Response is what became of a request.
type Response struct {
	Result     Result
	RetryAfter time.Duration // for how long the server wants no request, if PushedBack; zero: it does not say
	Least      time.Duration // the item waits at least this long, if its request has failed
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
	flights Queue[T] // by the time until which they count, or never
	pending Queue[T] // items with something to write, by the time since when, wherever they are
	ready   int      // items in queues of namespaces

	namespaces map[string]*namespace[T]
	healthy    heaps[T]
	tight      heaps[T]
	allTight   int                  // counted requests in flight of tight namespaces
	paced      Queue[*namespace[T]] // by the time of their next request for a new item
	idle       Queue[*namespace[T]] // by the time when they are forgotten

	server   pause
	budget   budget
	pushedBy *string // the namespace of the latest push-back, if nothing has passed since
}

// New returns an empty Schedule. It applies jitter to the delays after failed requests,
// unless jitter is nil.
func New[T Item[T]](jitter func(time.Duration) time.Duration) *Schedule[T] {
	if jitter == nil {
		jitter = func(d time.Duration) time.Duration { return d }
	}
	index := func(item T) *int32 { return &item.Slot().index }
	return &Schedule[T]{
		jitter:     jitter,
		now:        always,
		waiting:    NewQueue(index),
		held:       NewQueue(index),
		flights:    NewQueue(index),
		pending:    NewQueue(func(item T) *int32 { return &item.Slot().pending }),
		namespaces: make(map[string]*namespace[T]),
		healthy:    newHeaps[T](),
		tight:      newHeaps[T](),
		paced:      newHeap[T](),
		idle:       newHeap[T](),
		budget:     newBudget(),
	}
}

// Wait makes item wait until the given time, when [Schedule.Due] returns it. Nothing of it
// is to be written. Wait has no effect on the place of an item in flight.
func (s *Schedule[T]) Wait(item T, until, now time.Duration) {
	s.now = now
	n := s.unmark(item)
	if !s.InFlight(item) {
		s.put(item, &s.waiting, until)
	}
	s.plan(n)
}

// Ready says that a request for item should be made by the time due. Items go in the order of
// their due times, but one whose requests have failed waits until its back-off ends, and is
// due 5 minutes after that or later.
//
// An item that is ready already keeps the earlier of both due times. Ready has no effect on
// the place of an item in flight.
func (s *Schedule[T]) Ready(item T, due, now time.Duration) {
	s.now = now
	n, slot := s.namespace(item.Namespace()), item.Slot()
	if slot.pending == 0 {
		s.pending.Add(item, now)
		n.pending++
	}
	if !s.InFlight(item) {
		if slot.in != nil && slot.in != &s.waiting {
			due = min(due, slot.due)
		}
		slot.due = due
		s.place(item, n)
	}
	s.plan(n)
}

// unmark records that nothing of item is to be written. It returns the namespace of item, nil
// if that has nothing to remember.
func (s *Schedule[T]) unmark(item T) *namespace[T] {
	n := s.namespaces[item.Namespace()]
	if item.Slot().pending != 0 {
		s.pending.Remove(item)
		n.pending--
	}
	return n
}

// place puts an item with something to write, which is not in flight, where it belongs.
func (s *Schedule[T]) place(item T, n *namespace[T]) {
	slot := item.Slot()
	if s.hurried {
		slot.until = min(slot.until, s.now+retryHurried)
	}
	switch {
	case !slot.hasFailed():
		s.put(item, &n.fresh, slot.due-n.shift)
	case slot.until > s.now:
		s.put(item, &s.held, slot.until)
	default:
		s.put(item, &n.tried, max(slot.due, slot.until+later))
	}
}

// put moves item to a queue. The caller plans its namespace.
func (s *Schedule[T]) put(item T, q *Queue[T], at time.Duration) {
	slot := item.Slot()
	if s.isReady(slot.in) {
		s.ready--
	}
	if s.isReady(q) {
		s.ready++
	}
	move(item, &slot.in, q, at)
}

// isReady reports whether q is a queue of a namespace.
func (s *Schedule[T]) isReady(q *Queue[T]) bool {
	return q != nil && q != &s.waiting && q != &s.held && q != &s.flights
}

// Release ends the back-off of item: its next request waits for its namespace and for the
// budget, but no longer for itself.
func (s *Schedule[T]) Release(item T, now time.Duration) {
	s.now = now
	s.release(item, now)
}

// release ends the back-off of item at the given time, if it ends later.
func (s *Schedule[T]) release(item T, until time.Duration) {
	slot := item.Slot()
	slot.until = min(slot.until, until)
	if slot.in == &s.held {
		n := s.namespace(item.Namespace())
		s.place(item, n)
		s.plan(n)
	}
}

// Forgive sets the failures of item to zero, and ends its back-off.
func (s *Schedule[T]) Forgive(item T) {
	slot := item.Slot()
	slot.forgive()
	if slot.in == &s.held || s.isReady(slot.in) {
		n := s.namespace(item.Namespace())
		s.place(item, n)
		s.plan(n)
	}
}

// Remove removes item from the Schedule. If it is in flight, [Schedule.Done] must still
// follow.
func (s *Schedule[T]) Remove(item T) {
	n := s.unmark(item)
	if !s.InFlight(item) {
		s.put(item, nil, 0)
	}
	s.plan(n)
}

// InFlight reports whether a request for item is in flight.
func (s *Schedule[T]) InFlight(item T) bool { return item.Slot().in == &s.flights }

// Due returns an item whose time to wait is over, and makes it idle. The caller decides what
// becomes of it.
func (s *Schedule[T]) Due(now time.Duration) (item T, ok bool) {
	if !s.waiting.isDue(now) {
		return item, false
	}
	item = s.waiting.First()
	s.put(item, nil, 0)
	return item, true
}

// Next returns the item whose request should be made next, and puts it in flight. The caller
// must call [Schedule.Done]. ok is false if no request can be made now.
func (s *Schedule[T]) Next(now time.Duration) (item T, p Pass, ok bool) {
	s.advance(now)
	n, isRetry := s.best()
	if n == nil || !s.server.isOver(now) {
		return item, p, false
	}
	if isRetry {
		item = n.tried.First()
		n.retries++
		s.budget.take(now)
	} else {
		item = n.fresh.First()
		n.paced, n.next = n.failures >= Several && !s.hurried, now+pace
	}
	item.Slot().isRetry = isRetry
	n.inFlight++
	n.counted++
	s.put(item, &s.flights, now+flightCounts)
	s.plan(n)
	s.server.probing = s.server.on
	return item, Pass{namespace: n.name, round: s.server.round, probe: s.server.on, isRetry: isRetry}, true
}

// best returns the namespace of the next request, and whether that is for an item that has
// failed. n is nil if there is none. The earliest due goes first. The request that probes
// whether a pause is over is the most promising one.
func (s *Schedule[T]) best() (n *namespace[T], isRetry bool) {
	var due time.Duration
	consider := func(q *Queue[*namespace[T]], retry bool) {
		if q.Len() > 0 && (n == nil || !s.server.on && q.first() < due) {
			n, isRetry, due = q.First(), retry, q.first()
		}
	}
	isTightOpen, hasBudget := s.allTight < maxAllTight, s.budget.at <= s.now
	consider(&s.healthy.fresh, false)
	if isTightOpen {
		consider(&s.tight.fresh, false)
	}
	if hasBudget {
		consider(&s.healthy.retry, true)
	}
	if isTightOpen && hasBudget {
		consider(&s.tight.retry, true)
	}
	return n, isRetry
}

// advance does what is due by now.
func (s *Schedule[T]) advance(now time.Duration) {
	s.now = now
	for s.held.isDue(now) {
		item := s.held.First()
		n := s.namespace(item.Namespace())
		s.place(item, n)
		s.plan(n)
	}
	for s.paced.isDue(now) {
		n := s.paced.First()
		n.paced = false
		s.plan(n)
	}
	for s.flights.isDue(now) {
		item := s.flights.First()
		n := s.namespace(item.Namespace())
		n.leave(item.Slot().isRetry)
		s.flights.Move(item, never)
		s.plan(n)
	}
	for s.idle.isDue(now) || s.idle.Len() > maxIdle {
		n := s.idle.First()
		s.idle.Remove(n)
		delete(s.namespaces, n.name)
	}
}

// Done says what became of the request for an item in flight. p is what [Schedule.Next]
// returned with the item. The item is idle then; if something is to be written still, the
// caller calls [Schedule.Ready].
func (s *Schedule[T]) Done(item T, p Pass, r Response, now time.Duration) {
	s.now = now
	slot, n := item.Slot(), s.namespace(item.Namespace())
	if s.flights.At(item) != never {
		n.leave(slot.isRetry)
	}
	n.inFlight--
	if p.slow {
		n.slow--
	}
	s.put(item, nil, 0)
	s.answer(n, p, r)
	switch r.Result {
	case None:
	case Passed:
		isNews := slot.isDeniedOften(Several)
		slot.forgive()
		n.failures, n.passed, n.paced, s.pushedBy = 0, true, false, nil
		s.budget.pass(p.isRetry, now)
		if isNews {
			s.encourage(n)
		}
	default:
		slot.fail(r.Result)
		slot.until = now + s.backoff(slot, r.Least)
		if r.Result != Refused {
			n.failures++
			if !p.isRetry {
				n.postpone(now)
			}
		}
	}
	s.plan(n)
}

// answer says what a response means for the pause of the server.
func (s *Schedule[T]) answer(n *namespace[T], p Pass, r Response) {
	g, isCurrent := &s.server, p.round == s.server.round
	if p.probe && isCurrent && !p.slow {
		g.probing = false
	}
	switch r.Result {
	case PushedBack:
		isPause := r.RetryAfter > 0 || g.on || s.pushedBy != nil && *s.pushedBy != n.name
		s.pushedBy = &n.name
		if !isPause {
			return
		}
		if !g.on {
			g.on, g.since, g.until, isCurrent = true, s.now, s.now, true
		}
		delay := r.RetryAfter
		if isCurrent { // a request that was sent before the pause can only ask for more time
			g.failures = min(g.failures, math.MaxUint8-1) + 1
			g.round++
			g.probing = false
			longest := pauseMax
			if r.RetryAfter == 0 {
				longest = pauseGuess
			}
			delay = max(delay, s.jitter(backoff(pauseFirst, longest, g.failures)))
		}
		g.until = max(g.until, s.now+delay)
	case Passed, Denied, Refused:
		if p.probe {
			g.end(s.now)
		}
	}
}

// backoff returns for how long an item waits that has just failed.
func (s *Schedule[T]) backoff(slot *Slot[T], least time.Duration) (d time.Duration) {
	switch {
	case slot.last == Refused:
		first := cmp.Or(least, retryFirst)
		d = backoff(first, refusedMax*first, slot.alike)
	case slot.isDeniedOften(deniedOften):
		d = deniedLong
	case slot.IsDenied():
		d = backoff(retryFirst, deniedMax, slot.failures)
	default:
		d = backoff(retryFirst, retryMax, slot.failures)
	}
	d = max(least, s.jitter(d))
	if s.hurried {
		d = min(d, retryHurried)
	}
	return d
}

// encourage has the items of a namespace that have been denied for long tried soon: one like
// them has passed. If one is denied nevertheless, it waits for as long as before.
func (s *Schedule[T]) encourage(n *namespace[T]) {
	if s.now < n.encouraged {
		return // they are tried soon already
	}
	n.encouraged = s.now + deniedMax
	var items []T
	for _, q := range [...]*Queue[T]{&s.held, &s.waiting} {
		for _, node := range q.nodes {
			if node.item.Namespace() == n.name && node.item.Slot().isDeniedOften(deniedOften) {
				items = append(items, node.item)
			}
		}
	}
	for _, item := range items {
		s.release(item, s.now+s.jitter(deniedMax))
	}
}

// Slow says that the request with p takes long: perhaps all requests for its namespace do.
func (s *Schedule[T]) Slow(p *Pass, now time.Duration) {
	s.now = now
	if p.slow {
		return
	}
	p.slow = true
	if p.probe && p.round == s.server.round {
		s.server.probing = false
	}
	n := s.namespaces[p.namespace]
	n.slow++
	s.plan(n)
}

// Hurry is for a shutdown. From now on, items wait for at most 100 ms after a failure, also
// those that wait now, and retries and new items have no rate. Failures count from zero. A
// pause that the server asked for stays, and sick namespaces stay bulkheads.
func (s *Schedule[T]) Hurry(now time.Duration) {
	s.now, s.hurried = now, true
	s.budget.unlimited, s.budget.at = true, always
	for _, q := range [...]*Queue[T]{&s.waiting, &s.flights, &s.pending} {
		for _, node := range slices.Clone(q.nodes) {
			item, slot := node.item, node.item.Slot()
			isPlaced := slot.in == &s.held || s.isReady(slot.in)
			if isPlaced {
				s.put(item, nil, 0) // the order of its queue depends on the failures
			}
			slot.failures, slot.alike = 0, 0
			if isPlaced {
				s.place(item, s.namespaces[item.Namespace()])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.namespaces)) { // in one order
		n := s.namespaces[name]
		n.failures, n.paced = 0, false
		s.plan(n)
	}
}

// NextDue returns the next time at which [Schedule.Due] has a result. ok is false if no item
// waits.
func (s *Schedule[T]) NextDue() (at time.Duration, ok bool) {
	if s.waiting.Len() == 0 {
		return 0, false
	}
	return s.waiting.first(), true
}

// NextRequest returns the next time at which [Schedule.Next] can have a result if nothing
// else happens: it has none before, and one now if that time has come. ok is false if there
// is no such time.
func (s *Schedule[T]) NextRequest(now time.Duration) (at time.Duration, ok bool) {
	s.advance(now)
	if s.server.on && s.server.probing {
		return 0, false
	}
	at = never
	if n, _ := s.best(); n != nil {
		at = now
	}
	isTightOpen := s.allTight < maxAllTight
	if s.healthy.retry.Len() > 0 || isTightOpen && s.tight.retry.Len() > 0 {
		at = min(at, max(now, s.budget.at))
	}
	if s.held.Len() > 0 {
		at = min(at, max(s.held.first(), s.budget.at))
	}
	if s.paced.Len() > 0 {
		at = min(at, s.paced.first())
	}
	if s.ready > 0 {
		for _, node := range s.flights.nodes[:min(1, s.flights.Len())] {
			at = min(at, node.at) // it no longer counts then
		}
	}
	if s.server.on {
		at = max(at, s.server.until)
	}
	return at, at != never
}

// Backlog returns the number of items that are ready: whose request can be made now, or when
// their namespace, the budget, and the server permit it. pending is the number of those with
// something to write wherever they are, and since is since when the first of these has it.
func (s *Schedule[T]) Backlog() (ready, pending int, since time.Duration) {
	if s.pending.Len() > 0 {
		since = s.pending.first()
	}
	return s.ready, s.pending.Len(), since
}

// Pause returns until when the server wants no requests, and for how long it has wanted none
// in total. ok is false if it takes requests.
func (s *Schedule[T]) Pause(now time.Duration) (until, total time.Duration, ok bool) {
	total = s.server.total
	if s.server.on {
		total += now - s.server.since
	}
	return s.server.until, total, s.server.on
}

// Failures returns how many requests of a namespace have failed in a row.
func (s *Schedule[T]) Failures(namespace string) int {
	if n := s.namespaces[namespace]; n != nil {
		return n.failures
	}
	return 0
}

// PendingSince returns the items of a namespace that have had something to write since before
// the given time, without those in flight.
func (s *Schedule[T]) PendingSince(namespace string, before time.Duration) (items []T) {
	for _, n := range s.pending.nodes {
		if n.at <= before && !s.InFlight(n.item) && n.item.Namespace() == namespace {
			items = append(items, n.item)
		}
	}
	return items
}
