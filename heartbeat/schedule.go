package heartbeat

import (
	"slices"
	"time"
)

// Item is an element of a [Schedule]: usually a pointer to a struct with a
// [Slot].
type Item[T any] interface {
	comparable

	// Slot returns the place of the item. It must return the same address each
	// time, and the Slot must belong to this item alone.
	Slot() *Slot[T]

	// Gate returns what the next request for the item must pass.
	Gate() Gate
}

// Slot is the place of an item in a [Schedule], which alone writes to it. The
// zero value means that the item is idle.
type Slot[T any] struct {
	// in is the queue that holds the item: that of waiting items, one of the two
	// of ready items, or one of a gate. It is nil if the item is idle, and
	// Schedule.flight if it is in flight.
	in      *Queue[T]
	index   int32 // in that queue
	pending int32 // in Schedule.pending; zero if nothing is to be written
}

// Pass is the right to make one request. See [Schedule.Next] and [Schedule.Admit].
type Pass struct {
	// Gate is that of the item when the request was made, or the zero value if the
	// request is for no item.
	Gate Gate

	round  uint16 // of the gate of the server when the request passed it
	probe  bool   // the request probes that gate
	probed uint16 // the round of the namespace gate that the request probes, or zero
}

// Result is what the response to a request says about the gates it passed.
type Result uint8

const (
	None       Result = iota // no request was made
	Passed                   // the server handled the request
	PushedBack               // the server asks all clients to slow down
	Failed                   // the server could not handle the request, or did not respond
	Denied                   // the server does not permit the request
)

// Schedule decides which item is handled next. It holds each item in exactly one
// of four places: idle; waiting until a time; ready, ordered by the time by which
// its request should be made; or in flight. An item that is ready waits while a
// gate that its request must pass is closed.
//
// Times are distances from an epoch that the caller chooses. A Schedule starts no
// goroutine and reads no clock; the same calls have the same results. It is not
// safe for concurrent use. Make one with [NewSchedule].
type Schedule[T Item[T]] struct {
	jitter   func(time.Duration) time.Duration
	maxDelay time.Duration // limits all delays of namespaces; zero: no limit

	waiting Queue[T] // by the time until which the items wait
	ready   lanes[T]
	pending Queue[T] // items with something to write, by the time since when, wherever they are
	flight  Queue[T] // stays empty: see Slot
	hardRun uint8    // requests in a row for hard items, limited to maxHardRun

	server   gate[T]
	paused   time.Duration // total of all pauses of the server that have ended
	answered time.Duration // when a request passed last

	gates    map[Gate]*gate[T] // the closed ones
	suspects map[Gate]struct{} // open ones whose latest request has failed
	rounds   uint16            // the latest round of any of them; never zero again
	probes   Queue[*gate[T]]   // closed gates that nothing probes, by the time of the next probe
	draining []*lanes[T]       // parked items of gates that have opened
}

// lanes hold items whose requests can be made, by the time by which they are due: with
// and without a hard deadline. See [Schedule.Ready].
type lanes[T any] struct{ soft, hard Queue[T] }

func newLanes[T any](index func(T) *int32) lanes[T] {
	return lanes[T]{soft: NewQueue(index), hard: NewQueue(index)}
}

// Len returns the number of items.
func (l *lanes[T]) Len() int { return l.soft.Len() + l.hard.Len() }

// of returns the lane of items with a hard deadline, or of those without.
func (l *lanes[T]) of(hard bool) *Queue[T] {
	if hard {
		return &l.hard
	}
	return &l.soft
}

// first returns the lane of the item that is due first. There must be an item.
func (l *lanes[T]) first() *Queue[T] {
	return l.of(l.soft.Len() == 0 || l.hard.Len() > 0 && l.hard.first() < l.soft.first())
}

// NewSchedule returns an empty Schedule. It applies jitter to the delay after a
// failed request, unless jitter is nil.
func NewSchedule[T Item[T]](jitter func(time.Duration) time.Duration) *Schedule[T] {
	if jitter == nil {
		jitter = func(d time.Duration) time.Duration { return d }
	}
	index := func(item T) *int32 { return &item.Slot().index }
	return &Schedule[T]{
		jitter:  jitter,
		waiting: NewQueue(index),
		ready:   newLanes(index),
		pending: NewQueue(func(item T) *int32 { return &item.Slot().pending }),
		gates:   make(map[Gate]*gate[T]),
		probes:  NewQueue(func(g *gate[T]) *int32 { return &g.index }),

		suspects: make(map[Gate]struct{}),
	}
}

// Wait makes item wait until the given time. Nothing of it is to be written.
// Wait has no effect on the place of an item in flight.
func (s *Schedule[T]) Wait(item T, until time.Duration) {
	if item.Slot().pending != 0 {
		s.pending.Remove(item)
	}
	s.put(&s.waiting, item, until)
}

// Retry makes item wait until the given time because its last request failed.
// Wait and Retry differ in the numbers of [Schedule.Backlog] alone.
func (s *Schedule[T]) Retry(item T, until, now time.Duration) {
	s.markPending(item, now)
	s.put(&s.waiting, item, until)
}

// Ready says that a request for item should be made by the time due. Items go in
// the order of their due times, but an item with a hard deadline that has passed
// goes before every item without one: a heartbeat that comes too late makes the
// server delete a series that is still ongoing. Of four requests in a row, at
// least one goes to an item without a hard deadline if one is ready, so neither
// class starves the other.
//
// The order is fair if due is not before now, except for hard deadlines. A caller
// that retries an item should not repeat its hard deadline, or items that always
// fail can hold up those that do not.
//
// An item that is ready already keeps the earlier of both due times. Ready has no
// effect on the place of an item in flight.
func (s *Schedule[T]) Ready(item T, due time.Duration, hard bool, now time.Duration) {
	s.markPending(item, now)
	slot := item.Slot()
	if slot.in != nil && slot.in != &s.waiting && slot.in != &s.flight {
		due = min(due, slot.in.At(item))
	}
	to := &s.ready
	if g := s.gates[item.Gate()]; g != nil && (slot.in == &g.parked.soft || slot.in == &g.parked.hard) {
		to = &g.parked
	}
	s.put(to.of(hard), item, due)
}

func (s *Schedule[T]) markPending(item T, now time.Duration) {
	if item.Slot().pending == 0 {
		s.pending.Add(item, now)
	}
}

// put moves item to a queue, unless it is in flight.
func (s *Schedule[T]) put(q *Queue[T], item T, at time.Duration) {
	slot := item.Slot()
	switch {
	case slot.in == &s.flight:
	case slot.in == q:
		q.Move(item, at)
	default:
		if slot.in != nil {
			slot.in.Remove(item)
		}
		slot.in = q
		q.Add(item, at)
	}
}

// Remove removes item from the Schedule. If it is in flight, only the response is
// still expected; see [Schedule.Done].
func (s *Schedule[T]) Remove(item T) {
	slot := item.Slot()
	if slot.pending != 0 {
		s.pending.Remove(item)
	}
	if slot.in != nil && slot.in != &s.flight {
		slot.in.Remove(item)
		slot.in = nil
	}
}

// InFlight reports whether a request for item is in flight.
func (s *Schedule[T]) InFlight(item T) bool { return item.Slot().in == &s.flight }

// Due returns an item whose time to wait is over, and makes it idle. The caller
// decides what becomes of it.
func (s *Schedule[T]) Due(now time.Duration) (item T, ok bool) {
	if s.waiting.Len() == 0 || s.waiting.first() > now {
		return item, false
	}
	item = s.waiting.First()
	s.waiting.Remove(item)
	item.Slot().in = nil
	return item, true
}

// Next returns the item whose request should be made next, and puts it in
// flight. The caller must call [Schedule.Done]. ok is false if no item is ready,
// or if the gates of all that are ready are closed.
func (s *Schedule[T]) Next(now time.Duration) (item T, p Pass, ok bool) {
	if s.server.closed && (s.server.probing || now < s.server.until) {
		return item, Pass{}, false
	}
	s.unpark(now)
	for {
		q := s.first(now)
		if q == nil {
			return item, Pass{}, false
		}
		hard := q == &s.ready.hard
		item, due := q.First(), q.first()
		q.Remove(item)
		slot, gate := item.Slot(), item.Gate()
		g := s.gates[gate]
		if g != nil {
			if ok, _ := g.admits(now); !ok {
				slot.in = g.parked.of(hard)
				slot.in.Add(item, due)
				continue
			}
			if g.index != 0 {
				s.probes.Remove(g)
			}
		}
		p, _ = s.Admit(now)
		p.Gate = gate
		if g != nil {
			p.probed = g.round
		}
		slot.in = &s.flight
		if !hard {
			s.hardRun = 0
		} else if s.hardRun < maxHardRun {
			s.hardRun++
		}
		return item, p, true
	}
}

// maxHardRun is the number of requests in a row that go to items with a hard
// deadline that has passed while others are ready. The series of a tracker are
// written at most at the rate q of its requests, so n hard deadlines are spread
// over at least n/q. At 3/4 of the rate they are met n/3q late at most. This must
// be less than the time from the deadline until the Event expires, 27 minutes, and
// is at most 10 if q exceeds n/30m.
const maxHardRun = 3

// first returns the lane whose first item goes next, nil if both are empty.
func (s *Schedule[T]) first(now time.Duration) *Queue[T] {
	soft, hard := &s.ready.soft, &s.ready.hard
	switch {
	case hard.Len() == 0 && soft.Len() == 0:
		return nil
	case hard.Len() == 0:
		return soft
	case soft.Len() == 0:
		return hard
	case hard.first() <= now && s.hardRun == maxHardRun:
		return soft
	case hard.first() <= now, hard.first() <= soft.first():
		return hard
	default:
		return soft
	}
}

// unparkBatch bounds how many items of gates that have opened become ready at
// once: the caller holds a lock.
const unparkBatch = 64

// unpark makes items ready again that a gate held up: those of gates that have
// opened, and one to probe each gate whose time is over.
func (s *Schedule[T]) unpark(now time.Duration) {
	for n := unparkBatch; n > 0 && s.drains(); n-- {
		s.release(s.draining[len(s.draining)-1])
	}
	for s.probes.Len() > 0 && s.probes.first() <= now {
		g := s.probes.First()
		switch forget := g.until + gateKept; {
		case g.parked.Len() > 0:
			s.release(&g.parked)
			// If this item is evicted before it is handled, another one probes.
			s.probes.Move(g, now+retryFirst)
		case now < forget:
			// The items that failed wait for their retries. The first of them probes.
			s.probes.Move(g, forget)
		default:
			s.openGate(g)
		}
	}
}

// drains reports whether the last of the draining queues holds an item, after it
// has removed empty ones from the end.
func (s *Schedule[T]) drains() bool {
	for last := len(s.draining) - 1; last >= 0; last-- {
		if s.draining[last].Len() > 0 {
			return true
		}
		s.draining[last] = nil // do not keep the gate alive
		s.draining = s.draining[:last]
	}
	return false
}

// release makes the first item of from ready.
func (s *Schedule[T]) release(from *lanes[T]) {
	q := from.first()
	s.put(s.ready.of(q == &from.hard), q.First(), q.first())
}

// Admit asks for the right to make a request that is for no item. If ok,
// the caller must call [Schedule.Return].
func (s *Schedule[T]) Admit(now time.Duration) (p Pass, ok bool) {
	ok, p.probe = s.server.admits(now)
	p.round = s.server.round
	return p, ok
}

// Return says what became of the request that [Schedule.Admit] permitted.
// retryAfter is for how long the server wants no request; zero if it does not
// say.
func (s *Schedule[T]) Return(p Pass, result Result, retryAfter, now time.Duration) {
	g := &s.server
	if p.probe {
		g.probing = false
	}
	switch result {
	case PushedBack:
		if !g.closed || p.round == g.round {
			g.failures++
			g.round++
			retryAfter = max(retryAfter, s.jitter(backoff(pauseFirst, pauseMax, g.failures)))
		}
		// A request that was sent before the pause says nothing new, but can ask
		// for more time.
		if !g.closed || retryAfter > 0 {
			g.close(now, retryAfter)
		}
	case Passed, Denied:
		s.answered = now
		if p.probe {
			s.paused += now - g.since
			g.open()
		}
	case Failed, None:
		// The server did not say that requests may continue: the next one probes.
	}
}

// Done says what became of the request for an item in flight. p is what
// [Schedule.Next] returned with the item. The item is idle then; if something is to be
// written still, the caller calls Ready or Retry.
func (s *Schedule[T]) Done(item T, p Pass, result Result, retryAfter, now time.Duration) {
	item.Slot().in = nil
	s.Abandon(&p, result, retryAfter, now)
}

// Abandon says that the request with p does not end in time. Its item stays in flight,
// but the request holds up no other item that must pass the same gates. Abandon changes
// p, so that [Schedule.Done] does not judge the gates a second time.
func (s *Schedule[T]) Abandon(p *Pass, result Result, retryAfter, now time.Duration) {
	key, pass := p.Gate, *p
	*p = Pass{Gate: key}
	s.Return(pass, result, retryAfter, now)

	g := s.gates[key]
	probed := g != nil && g.round == pass.probed
	if probed {
		g.probing = false
	}
	switch result {
	case Passed:
		delete(s.suspects, key)
		if g != nil {
			s.openGate(g)
		}
		return
	case Failed, Denied:
		if g == nil {
			if result == Failed && s.forgive(key) {
				return
			}
			delete(s.suspects, key)
			g = &gate[T]{parked: newLanes(s.waiting.index), key: key}
			s.gates[key] = g
		} else if !probed {
			break // the request was sent before the gate closed, and says nothing new
		}
		g.failures++
		if s.rounds++; s.rounds == 0 {
			s.rounds++
		}
		g.round = s.rounds
		g.close(now, s.Backoff(g.failures))
	case None, PushedBack:
	}
	if g == nil || g.probing {
		return
	}
	if g.index == 0 {
		s.probes.Add(g, g.until)
	} else {
		s.probes.Move(g, g.until)
	}
}

// maxSuspects bounds how many gates are remembered. To forget them costs a request
// each.
const maxSuspects = 1000

// forgive reports whether a failure leaves the gate of a namespace open. The first
// one does: on a network that loses a request now and then, it must not hold up all
// others of the namespace. A second one in a row does not.
func (s *Schedule[T]) forgive(key Gate) bool {
	if _, failed := s.suspects[key]; failed {
		return false
	}
	if len(s.suspects) >= maxSuspects {
		clear(s.suspects)
	}
	s.suspects[key] = struct{}{}
	return true
}

// openGate opens the gate of a namespace.
func (s *Schedule[T]) openGate(g *gate[T]) {
	delete(s.gates, g.key)
	if g.index != 0 {
		s.probes.Remove(g)
	}
	if g.parked.Len() > 0 {
		s.draining = append(s.draining, &g.parked)
	}
}

// Backoff returns the delay after this many requests in a row have failed: before an
// item is tried again, or a namespace is probed.
func (s *Schedule[T]) Backoff(failures int) time.Duration {
	d := s.jitter(backoff(retryFirst, retryMax, failures))
	if s.maxDelay > 0 {
		return min(d, s.maxDelay)
	}
	return d
}

// Hurry limits all later delays, and has closed gates of namespaces probed at once. It
// is for a shutdown. A pause that the server asked for stays.
func (s *Schedule[T]) Hurry(now time.Duration) {
	s.maxDelay = retryHurried
	for _, n := range slices.Clone(s.probes.nodes) {
		n.item.until = now
		s.probes.Move(n.item, now)
	}
}

// NextDue returns the next time at which [Schedule.Due] has a result. ok is false
// if no item waits.
func (s *Schedule[T]) NextDue() (at time.Duration, ok bool) {
	if s.waiting.Len() == 0 {
		return 0, false
	}
	return s.waiting.first(), true
}

// NextRequest returns the next time at which [Schedule.Next] can have a result, or
// [Schedule.Admit] if admit is true, if nothing else happens before. ok is false if
// there is no such time.
func (s *Schedule[T]) NextRequest(now time.Duration, admit bool) (at time.Duration, ok bool) {
	switch {
	case s.server.probing:
		return 0, false
	case admit, s.ready.Len() > 0, s.drains():
		at = now
	case s.probes.Len() > 0:
		at = s.probes.first()
	default:
		return 0, false
	}
	if s.server.closed {
		at = max(at, s.server.until)
	}
	return at, true
}

// Backlog returns the number of items that are ready, the number of those with
// something to write wherever they are, and since when the first of these has it.
// pending is at most the number of items that are tracked or in flight.
func (s *Schedule[T]) Backlog() (ready, pending int, since time.Duration) {
	ready = s.ready.Len()
	for _, parked := range s.draining {
		ready += parked.Len()
	}
	if s.pending.Len() > 0 {
		since = s.pending.first()
	}
	return ready, s.pending.Len(), since
}

// Pause returns until when the server wants no requests, and for how long it has
// wanted none in total. ok is false if it takes requests.
func (s *Schedule[T]) Pause(now time.Duration) (until, total time.Duration, ok bool) {
	total = s.paused
	if s.server.closed {
		total += now - s.server.since
	}
	return s.server.until, total, s.server.closed
}

// Blocked returns an item that a closed gate holds up and that accept accepts. It
// looks at a bounded number of items, and begins with those that are due last.
func (s *Schedule[T]) Blocked(accept func(T) bool) (item T, ok bool) {
	const gates, items = 8, 8
	for _, n := range s.probes.nodes[:min(gates, s.probes.Len())] {
		for _, parked := range [][]node[T]{n.item.parked.soft.nodes, n.item.parked.hard.nodes} {
			for i := len(parked) - 1; i >= max(0, len(parked)-items); i-- {
				if accept(parked[i].item) {
					return parked[i].item, true
				}
			}
		}
	}
	return item, false
}

// Held reports whether item, which has something to write and is not in flight, must pass
// the closed gate of a namespace.
func (s *Schedule[T]) Held(item T) bool {
	return item.Slot().pending != 0 && !s.InFlight(item) && s.gates[item.Gate()] != nil
}

// Expired returns the items to give up after a request has not passed their gate,
// without those in flight: they have had something to write for ttl, and the gate has
// been closed for as long and is alone the reason why they wait: the server has handled
// other requests since. If it has not, the outage does not count, and the gate is taken
// for one that has just closed. If final, two failures in a row are enough.
func (s *Schedule[T]) Expired(key Gate, final bool, ttl, now time.Duration) (items []T) {
	g, before := s.gates[key], now-ttl
	switch {
	case g == nil:
		return nil
	case final && g.failures > 1:
		before = now
	case s.answered <= before:
		g.since = g.until
		return nil
	case g.since > before:
		return nil
	}
	for _, n := range s.pending.nodes {
		if n.at <= before && !s.InFlight(n.item) && n.item.Gate() == key {
			items = append(items, n.item)
		}
	}
	return items
}
