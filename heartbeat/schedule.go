package heartbeat

import (
	"maps"
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

	// Tried reports whether the latest request for the item has Failed or was Denied.
	Tried() bool
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

// Pass is the right to make one request. See [Schedule.Next].
type Pass struct {
	// Gate is that of the item when the request was made.
	Gate Gate

	round   uint16 // of the pause of the server when the request was made
	probe   bool   // the request probes whether the pause is over
	probed  uint16 // the round of the namespace gate that the request probes, or zero
	slow    uint16 // the gate of the namespace for which the request is a slow one, or zero
	turn    bool   // it probes because the delay of that gate is over
	counted bool   // in Schedule.probing
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

	server pause
	paused time.Duration // total of all pauses of the server that have ended
	pusher Gate          // of the latest push-back, if nothing has passed since
	outage int           // requests in a row that have Failed, limited to Several
	last   time.Duration // when the latest probe of a gate began

	known    map[Gate]bool     // gates that are open; true: the latest request has failed
	gates    map[Gate]*gate[T] // those that are closed
	rounds   uint16            // the latest round of any of them; never zero again
	probes   Queue[*gate[T]]   // closed gates that nothing probes, by the time of the next probe
	probing  int               // probes in flight of gates whose probes take long
	probed   bool              // the latest request was a probe of such a gate
	draining []*parked[T]      // items of gates that have opened
}

// lanes hold items whose requests can be made, by the time by which they are due: with
// and without a hard deadline. See [Schedule.Ready].
type lanes[T any] struct{ soft, hard Queue[T] }

func newLanes[T any](index func(T) *int32) lanes[T] {
	return lanes[T]{soft: NewQueue(index), hard: NewQueue(index)}
}

// Len returns the number of items.
func (l *lanes[T]) Len() int { return l.soft.Len() + l.hard.Len() }

func (l *lanes[T]) holds(q *Queue[T]) bool { return q == &l.soft || q == &l.hard }

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
		known:   make(map[Gate]bool),
		gates:   make(map[Gate]*gate[T]),
		probes:  NewQueue(func(g *gate[T]) *int32 { return &g.index }),
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
	if g := s.gates[item.Gate()]; g != nil && g.parked.holds(slot.in) {
		s.park(g, item, due, hard)
		return
	}
	s.put(s.ready.of(hard), item, due)
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
	if !s.server.isOver(now) {
		return item, Pass{}, false
	}
	s.unpark()
	for {
		q, g := s.first(now), s.dueProbe(now)
		switch {
		// Probes hold up nothing else. After a pause, what no gate holds up says more.
		case g != nil && (q == nil || !s.probed && !s.server.closed):
			item, turn := g.next(now, s.maxDelay > 0)
			slot := item.Slot()
			if due := slot.in.At(item); item.Gate() != g.key { // it needs another request now
				s.put(s.ready.of(slot.in == &g.parked.fresh.hard), item, due)
				continue
			}
			s.probed = true
			return item, s.probe(g, item, turn, now), true
		case q == nil:
			return item, Pass{}, false
		}
		item, hard := q.First(), q == &s.ready.hard
		key := item.Gate()
		if g := s.gates[key]; g != nil {
			s.park(g, item, q.first(), hard)
			continue
		}
		s.probed = false
		if !hard {
			s.hardRun = 0
		} else if s.hardRun < maxHardRun {
			s.hardRun++
		}
		if _, known := s.known[key]; !known {
			return item, s.probe(s.closeGate(key, now), item, true, now), true
		}
		return item, s.send(item, key), true
	}
}

func (s *Schedule[T]) send(item T, key Gate) Pass {
	slot := item.Slot()
	slot.in.Remove(item)
	slot.in = &s.flight
	p := Pass{Gate: key, round: s.server.round, probe: s.server.closed}
	s.server.probing = s.server.closed
	return p
}

// probe puts item in flight to probe a gate. turn says that the delay of the gate is over.
func (s *Schedule[T]) probe(g *gate[T], item T, turn bool, now time.Duration) Pass {
	if g.index != 0 {
		s.probes.Remove(g)
	}
	g.probing, g.last, g.prober = true, now, item
	if !item.Tried() { // one that has failed takes no turn of those that have arrived
		g.arrivals = max(g.arrivals-1, 0)
	}
	if g.arrived == item {
		var none T
		g.arrived = none
	}
	s.last = now
	p := s.send(item, g.key)
	p.probed, p.turn = g.round, turn
	if g.hangs {
		p.counted = true
		s.probing++
	}
	return p
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
	switch isLate := hard.Len() > 0 && hard.first() <= now; {
	case s.ready.Len() == 0:
		return nil
	case hard.Len() == 0, isLate && soft.Len() > 0 && s.hardRun == maxHardRun:
		return soft
	case isLate, soft.Len() == 0, hard.first() <= soft.first():
		return hard
	default:
		return soft
	}
}

// unparkBatch bounds how many items of gates that have opened become ready at
// once: the caller holds a lock.
const unparkBatch = 64

// unpark makes items of gates that have opened ready again.
func (s *Schedule[T]) unpark() {
	for n := unparkBatch; n > 0 && s.drains(); n-- {
		q := s.draining[len(s.draining)-1].first()
		s.put(s.ready.of(q == &s.draining[len(s.draining)-1].fresh.hard), q.First(), q.first())
	}
}

func (s *Schedule[T]) park(g *gate[T], item T, due time.Duration, hard bool) {
	s.put(g.parked.of(item.Tried(), hard), item, due)
	if !item.Tried() && item != g.prober { // after a push-back, an item comes back untried
		g.arrived, g.arrivals = item, min(g.arrivals+1, quick)
	}
	s.plan(g)
}

// plan puts a gate where its next probe belongs.
func (s *Schedule[T]) plan(g *gate[T]) {
	switch busy := s.isBusy(g); {
	case busy && g.index != 0:
		s.probes.Remove(g)
	case busy:
	case g.index == 0:
		s.probes.Add(g, s.probeAt(g))
	default:
		s.probes.Move(g, s.probeAt(g))
	}
}

// isBusy reports whether no item of a gate can probe until a request in flight ends. While
// one takes long, those that have failed wait: the other place is for items that have not,
// which would wait for the timeout of a server that hangs.
func (s *Schedule[T]) isBusy(g *gate[T]) bool {
	return g.probing || g.slow == maxSlow ||
		g.slow > 0 && g.parked.fresh.Len() == 0 && g.parked.tried.Len() > 0 && s.maxDelay == 0
}

// probeAt returns when the next item probes a gate, or when the gate is forgotten if no
// item waits.
//
// A gate that has failed a few items can be open for all others, so items that have not
// failed probe soon. But while no gate passes anything, all of them together have one such
// probe at a time.
func (s *Schedule[T]) probeAt(g *gate[T]) time.Duration {
	isOutage := s.outage >= Several
	at := g.until
	switch _, arrived := g.newcomer(); {
	case g.parked.Len() == 0:
		return max(g.until, g.pushed) + gateKept
	case s.maxDelay > 0 && g.isDenied, g.parked.fresh.Len() > 0 && (s.maxDelay > 0 || g.isQuick() && !isOutage):
		at = g.last
	case g.parked.fresh.Len() == 0:
	case arrived && isOutage:
		at = min(at, s.last+newcomerAfter)
	case arrived:
		at = min(at, g.last+newcomerAfter)
	}
	if g.slow > 0 {
		at = max(at, g.last+slowAfter)
	}
	return max(at, g.pushed)
}

// dueProbe returns a gate that an item is to probe now, nil if there is none. It forgets
// gates whose time is over.
func (s *Schedule[T]) dueProbe(now time.Duration) *gate[T] {
	for s.probes.Len() > 0 && s.probes.first() <= now {
		g := s.probes.First()
		switch at := s.probeAt(g); {
		case s.isBusy(g): // the items that have not failed have left
			s.probes.Remove(g)
		case at > now: // the item that was to probe has left
			s.probes.Move(g, at)
		case g.parked.Len() == 0:
			s.openGate(g)
		case g.hangs && s.probing >= maxProbes:
			s.probes.Move(g, now+newcomerAfter)
		default:
			return g
		}
	}
	return nil
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

// answer says what the response to a request means for the pause of the server. isPause
// says that the server pushes back: it said for how long, or it did so in several
// namespaces.
func (s *Schedule[T]) answer(p Pass, result Result, isPause bool, retryAfter, now time.Duration) {
	g := &s.server
	if p.probe {
		g.probing = false
	}
	switch {
	case result == PushedBack && isPause:
		if !g.closed || p.round == g.round {
			limit := pauseMax
			if retryAfter == 0 {
				limit = pauseGuess
			}
			g.failures++
			g.round++
			retryAfter = max(retryAfter, s.jitter(backoff(pauseFirst, limit, g.failures)))
		}
		// A request that was sent before the pause says nothing new, but can ask
		// for more time.
		if !g.closed || retryAfter > 0 {
			g.close(now, retryAfter)
		}
	case result == Passed, result == Denied:
		if p.probe {
			s.paused += now - g.since
			g.open()
		}
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
	isPause := retryAfter > 0 || s.server.closed || s.pusher != Gate{} && s.pusher.Namespace != key.Namespace
	s.answer(pass, result, isPause, retryAfter, now)
	if pass.counted {
		s.probing--
	}

	g := s.gates[key]
	isProbe, isSlow := g != nil && g.round == pass.probed, g != nil && g.id == pass.slow
	if isProbe {
		g.probing, g.hangs = false, false
		g.round = s.nextRound()
	}
	if isSlow {
		g.slow--
	}
	switch result {
	case Passed:
		s.outage, s.pusher = 0, Gate{}
		if isSuspect, known := s.known[key]; isSuspect || !known {
			s.know(key, false)
		}
		if g != nil {
			s.openGate(g)
		}
		return
	case Denied:
		s.outage = 0
	case Failed:
		s.outage = min(s.outage+1, Several)
		if isSuspect, known := s.known[key]; known && !isSuspect {
			// On a network that loses a request now and then, it must not hold up all
			// others of the namespace.
			s.know(key, true)
			return
		}
	case PushedBack:
		if s.pusher = key; isPause {
			break
		}
	case None:
	}
	if g == nil && (result == Failed || result == Denied || result == PushedBack && !isPause) {
		g = s.closeGate(key, now)
		isProbe, pass.turn = true, true
	}
	if g == nil {
		return
	}
	if isProbe || isSlow { // otherwise the request was sent before the gate closed, and says nothing new
		s.failed(g, result, isPause, pass.turn, now)
	}
	s.plan(g)
}

// failed says that a probe of g has not passed.
func (s *Schedule[T]) failed(g *gate[T], result Result, isPause, turn bool, now time.Duration) {
	switch {
	case result == Failed || result == Denied:
		g.failures++
		g.isDenied = result == Denied
		switch {
		case !turn:
		case result == Denied:
			// No sign that the server has too much to do, and each item has its own back-off.
			// But if a role is withdrawn, there can be thousands: together, the closed gates
			// have about one such probe a second.
			g.turns = g.turns%2 + 1
			g.until = now + s.limited(min(retryFirst*time.Duration(len(s.gates)), retryMax))
		default:
			g.turns++
			g.until = now + s.Backoff(g.turns)
		}
	case result == PushedBack && !isPause:
		g.pushes++
		g.pushed = now + s.jitter(backoff(pauseFirst, pauseGuess, g.pushes))
	}
}

// Slow says that the request with p takes long: perhaps all requests for the namespace do.
// The others wait for a few seconds before one of them probes; those that have failed wait
// until no request of the gate takes long. At most two wait for the server at a time.
func (s *Schedule[T]) Slow(p *Pass, now time.Duration) {
	g := s.gates[p.Gate]
	switch {
	case g == nil:
		g = s.closeGate(p.Gate, now)
		p.turn = true
	case p.probed != g.round:
		return
	}
	g.probing, p.probed, g.hangs = false, 0, true
	g.slow++
	p.slow = g.id
	s.plan(g)
}

func (s *Schedule[T]) closeGate(key Gate, now time.Duration) *gate[T] {
	delete(s.known, key)
	g := &gate[T]{
		key: key, id: s.nextRound(), round: s.nextRound(), last: now, until: now,
		parked: parked[T]{newLanes(s.waiting.index), NewQueue(s.waiting.index)},
	}
	s.gates[key] = g
	return g
}

func (s *Schedule[T]) nextRound() uint16 {
	if s.rounds++; s.rounds == 0 {
		s.rounds++
	}
	return s.rounds
}

// maxKnown bounds how many open gates are remembered. To forget them costs nothing but that
// one request precedes the others.
const maxKnown = 10_000

func (s *Schedule[T]) know(key Gate, isSuspect bool) {
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	s.known[key] = isSuspect
}

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
	return s.limited(backoff(retryFirst, retryMax, failures))
}

// BackoffDenied is [Schedule.Backoff] for an item that the server has denied.
func (s *Schedule[T]) BackoffDenied(failures int) time.Duration {
	if failures > DeniedOften {
		return s.limited(deniedLong)
	}
	return s.limited(backoff(retryFirst, deniedMax, failures))
}

func (s *Schedule[T]) limited(d time.Duration) time.Duration {
	if d = s.jitter(d); s.maxDelay > 0 {
		return min(d, s.maxDelay)
	}
	return d
}

// Hurry limits all later delays, has closed gates of namespaces probed at once, and
// counts their failures from now on. It is for a shutdown. A pause that the server asked
// for stays.
func (s *Schedule[T]) Hurry(now time.Duration) {
	s.maxDelay = retryHurried
	for _, key := range slices.SortedFunc(maps.Keys(s.gates), Gate.compare) { // in one order
		g := s.gates[key]
		g.failures, g.turns, g.until = 0, 0, now
		s.plan(g)
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

// NextRequest returns the next time at which [Schedule.Next] can have a result if nothing
// else happens before. ok is false if there is no such time.
func (s *Schedule[T]) NextRequest(now time.Duration) (at time.Duration, ok bool) {
	switch {
	case s.server.probing:
		return 0, false
	case s.ready.Len() > 0, s.drains():
		at = now
	case s.probes.Len() > 0:
		at = max(now, s.probes.first())
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
		p := &n.item.parked
		for _, parked := range [][]node[T]{p.tried.nodes, p.fresh.soft.nodes, p.fresh.hard.nodes} {
			for i := len(parked) - 1; i >= max(0, len(parked)-items); i-- {
				if accept(parked[i].item) {
					return parked[i].item, true
				}
			}
		}
	}
	return item, false
}

// HasClosedGates reports whether the gate of any namespace is closed, so that [Schedule.Held]
// can be true for an item.
func (s *Schedule[T]) HasClosedGates() bool { return len(s.gates) > 0 }

// Held reports whether item, which has something to write and is not in flight, must pass
// the closed gate of a namespace, which a request has not passed.
func (s *Schedule[T]) Held(item T) bool {
	g := s.gates[item.Gate()]
	return g != nil && g.failures+g.pushes > 0 && item.Slot().pending != 0 && !s.InFlight(item)
}

// Failures returns how many probes of a gate have failed in a row. It is zero for a gate
// that is open.
func (s *Schedule[T]) Failures(key Gate) int {
	if g := s.gates[key]; g != nil {
		return g.failures
	}
	return 0
}

// PendingSince returns the items that must pass a gate and have had something to write since
// before the given time, without those in flight.
func (s *Schedule[T]) PendingSince(key Gate, before time.Duration) (items []T) {
	if s.pending.Len() == 0 || s.pending.first() > before {
		return nil
	}
	for _, n := range s.pending.nodes {
		if n.at <= before && !s.InFlight(n.item) && n.item.Gate() == key {
			items = append(items, n.item)
		}
	}
	return items
}
