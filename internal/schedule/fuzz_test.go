package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/workload"
)

type place uint8

const (
	idle place = iota
	waiting
	queued // held or ready
	flying
)

// modelItem is where an item should be.
type modelItem struct {
	*item
	place   place
	at      time.Duration // until when it waits, when it is due, or since when it is in flight
	pending bool
	since   time.Duration
}

// history is one history of a Schedule, with the places of its items.
type history struct {
	t       *testing.T
	s       *Schedule[*item]
	items   []*modelItem
	now     time.Duration
	unique  time.Duration
	none    time.Duration // Next has no result before, unless something happens
	hurried bool
	pauses  map[string]time.Duration // until when, by namespace
	sent    []int                    // the items that took a request
}

const historyOps = 600 // see history.step

var (
	historySteps   = []time.Duration{0, SlowAfter, 1, time.Millisecond, time.Second, 5 * time.Second, 40 * time.Second, 5 * time.Minute}
	historyResults = []Answer{
		{Outcome: Written}, {Outcome: Changed, Delay: time.Second}, {Outcome: PushedBack}, {Outcome: Troubled}, {Outcome: Troubled}, {Outcome: Troubled}, {Outcome: Denied},
		{Outcome: Refused},
	}
)

// step does one operation: three bytes say which, with which item, and when.
func (h *history) step(op, which, when byte) {
	it := h.items[int(which)%len(h.items)]
	span := historySteps[when%8]
	h.unique += 1009 // more than all steps of a nanosecond, and less than one of a millisecond
	at := h.now + span + h.unique
	before := h.none
	h.none = 0
	switch op % 16 {
	case 0:
		h.s.Wait(it.item, at, h.now)
		it.pending = false
		it.put(waiting, at)
	case 1, 2, 3, 4:
		h.ready(it, at-time.Minute)
	case 5:
		h.s.Remove(it.item)
		it.pending = false
		it.put(idle, 0)
	case 6:
		h.due()
	case 7, 8, 9:
		h.none = before
		h.next()
	case 10, 11:
		switch {
		case it.place == flying && when == 8:
			h.s.Cancel(it.item, h.now)
			it.place = idle
			if it.pending {
				h.ready(it, at)
			}
		case it.place == flying:
			r := historyResults[when%8]
			if r.Outcome == PushedBack {
				r.Pause = historySteps[when/8%8] * time.Duration(when/64%2)
			}
			h.respond(it, r)
			if it.pending {
				h.ready(it, at)
			}
		}
	case 12, 13:
		h.none = before
		h.now += span
	case 14, 15:
		switch op {
		case 254:
			h.s.Release(it.item, h.now)
		case 255:
			h.s.Hurry(h.now)
			h.hurried = true
		}
	}
	h.check()
}

func (h *history) ready(it *modelItem, due time.Duration) {
	h.s.Ready(it.item, due, h.now)
	if !it.pending {
		it.pending, it.since = true, h.now
	}
	if it.place == queued {
		due = min(due, it.at)
	}
	it.put(queued, due)
}

func (it *modelItem) put(p place, at time.Duration) {
	if it.place != flying {
		it.place, it.at = p, at
	}
}

// due requires that Due returns the item that has waited until the earliest time.
func (h *history) due() (ok bool) {
	var want *modelItem
	for _, it := range h.items {
		if it.place == waiting && it.at <= h.now && (want == nil || it.at < want.at) {
			want = it
		}
	}
	got, ok := h.s.Due(h.now)
	require.Equal(h.t, want != nil, ok)
	if ok {
		require.Same(h.t, want.item, got)
		want.place = idle
	}
	return ok
}

// isFull reports whether its namespace holds up an item that is ready.
func (h *history) isFull(it *modelItem) bool {
	n := h.s.namespaces[it.namespace]
	isRetry := it.slot.Failures() > 0
	isSick := n.failures > 0 || (n.slow > 0 || n.wasSlow) && !h.hurried
	return isSick && (n.inFlight() >= 2 || isRetry && n.lanes[tried].inFlight >= 1) || isRetry && n.retryAt > h.now && !h.hurried
}

// next requires that Next returns an item that may take a request, or that there is none, and
// that Wake knows.
func (h *history) next() (ok bool) {
	_, request := h.s.Wake(h.now)
	full := make(map[*item]bool)
	for _, it := range h.items {
		full[it.item] = it.place == queued && h.isFull(it)
	}
	got, ok := h.s.Next(h.now)
	require.Equal(h.t, ok, request <= h.now, "Wake is not exact")
	if !ok {
		h.none = request
		h.checkNone(full)
		return false
	}
	require.GreaterOrEqual(h.t, h.now, h.none, "no request was announced so early")
	require.GreaterOrEqual(h.t, h.now, h.pauses[got.namespace], "a request in a pause")
	require.False(h.t, full[got], "too many requests in flight")
	i := slices.IndexFunc(h.items, func(it *modelItem) bool { return it.item == got })
	it := h.items[i]
	require.Equal(h.t, queued, it.place)
	if got.slot.Failures() > 0 {
		require.LessOrEqual(h.t, got.slot.until, h.now, "its back-off has not ended")
	}
	it.place, it.at = flying, h.now
	h.sent = append(h.sent, i)
	return true
}

// checkNone requires a reason why each item that is ready takes no request.
func (h *history) checkNone(full map[*item]bool) {
	s := h.s
	if s.quick >= s.places {
		return
	}
	for _, it := range h.items {
		switch {
		case it.place != queued || full[it.item] || h.pauses[it.namespace] > h.now:
		default:
			require.Greater(h.t, it.slot.until, h.now, "an item waits for nothing")
		}
	}
}

func (h *history) respond(it *modelItem, r Answer) {
	n := h.s.namespaces[it.namespace]
	before, failures := it.slot.Failures(), n.failures
	h.s.Done(it.item, r, h.now)
	it.place = idle
	switch r.Outcome {
	case Written, Changed:
		require.Zero(h.t, it.slot.Failures()+n.failures)
	case Refused:
		require.Equal(h.t, []int{before + 1, 0}, []int{it.slot.Failures(), n.failures})
	case PushedBack:
		h.pauses[it.namespace] = max(h.pauses[it.namespace], h.now+r.Pause)
		fallthrough
	default:
		require.Equal(h.t, []int{before + 1, failures + 1}, []int{it.slot.Failures(), n.failures})
	}
}

func (h *history) check() {
	s := h.s
	var pending []time.Duration
	isHopeful := false
	placed, counts := map[place]int{}, map[string]namespace[*item]{}
	for _, it := range h.items {
		slot, n := it.Slot(), s.namespaces[it.namespace]
		isQueued := slot.in == &s.held || n != nil && slot.in == &n.lanes[min(slot.Failures(), 1)].items
		ok := s.InFlight(it.item) == (it.place == flying) &&
			(slot.in == nil) == (it.place == idle) &&
			(slot.in == &s.waiting) == (it.place == waiting) &&
			isQueued == (it.place == queued) &&
			(it.place != waiting || s.waiting.At(it.item) == it.at) &&
			(it.place != queued || slot.due == it.at) &&
			(slot.pending != 0) == it.pending && (!it.pending || n.pending.At(it.item) == it.since)
		require.True(h.t, ok, "%+v instead of %+v", slot, it)
		placed[it.place]++
		if it.pending {
			pending = append(pending, it.since)
		}
		isReady := it.place == flying || it.place == queued && slot.in != &s.held
		isHopeful = isHopeful || isReady && slot.kind() == fresh || it.pending && h.pauses[it.namespace] > h.now
		if it.place == flying {
			count := counts[it.namespace]
			if s.flights.At(it.item) == Never {
				count.slow++
				require.GreaterOrEqual(h.t, h.now-it.at, SlowAfter)
			}
			count.lanes[slot.kind()].inFlight++
			counts[it.namespace] = count
		}
	}
	gotPending, gotHopeful, gotSince := s.Backlog(s.now)
	require.Equal(h.t, len(pending), gotPending)
	require.Equal(h.t, isHopeful, gotHopeful > 0)
	if len(pending) > 0 {
		require.Equal(h.t, slices.Min(pending), gotSince)
	}
	require.Equal(h.t, []int{placed[waiting], placed[flying]}, []int{s.waiting.Len(), s.flights.Len()})
	quick, sum, lanes := 0, s.held.Len(), s.paced.Len()+s.likely.Len()+s.unlikely.Len()
	for name, n := range s.namespaces {
		c := counts[name]
		require.Equal(h.t, []int{c.inFlight(), c.slow}, []int{n.inFlight(), n.slow}, name)
		quick += c.inFlight() - c.slow
		checkHeap(h.t, &n.pending)
		for k := range n.lanes {
			l := &n.lanes[k]
			sum += l.items.Len()
			if l.in != nil {
				lanes--
			}
			checkHeap(h.t, &l.items)
		}
	}
	require.Equal(h.t, []int{placed[queued], quick}, []int{sum, s.quick})
	checkHeap(h.t, &s.likely)
	checkHeap(h.t, &s.unlikely)
	checkHeap(h.t, &s.paced)
	checkHeap(h.t, &s.waiting)
	checkHeap(h.t, &s.held)
	checkHeap(h.t, &s.flights)
	require.Zero(h.t, lanes, "each lane is in the queue that it knows")
}

// checkHeap requires that q is a heap that knows its items and keeps no other one alive.
func checkHeap[T comparable](t *testing.T, q *Queue[T]) {
	for i, n := range q.nodes {
		if int(*q.index(n.item)) != i+1 || n.at < q.nodes[max(0, i-1)/2].at {
			require.Fail(t, "not a heap", "at %d of %d", i, q.Len())
		}
	}
	var none T
	for _, n := range q.nodes[:cap(q.nodes)][q.Len():] {
		require.Equal(t, none, n.item)
	}
}

// settle requires that everything is handled soon after the last failure, and never before
// the time that was announced.
func (h *history) settle() {
	pass := func() {
		for _, it := range h.items {
			if it.place == flying {
				h.respond(it, Answer{Outcome: Written})
				h.s.Remove(it.item)
				it.pending = false
			}
		}
		h.none = 0
		h.check()
	}
	pass()
	end := h.now + time.Hour // longer than all steps, delays, and pauses together
	for h.now <= end {
		for h.due() {
		}
		for h.next() {
			pass()
		}
		due, request := h.s.Wake(h.now)
		at := min(due, request)
		if at == Never {
			break
		}
		require.Greater(h.t, at, h.now)
		h.now = at - 1
		require.False(h.t, h.next(), "too early")
		h.now = at
	}
	for _, it := range h.items {
		require.Equal(h.t, idle, it.place, "%+v", it)
	}
	for _, n := range h.s.namespaces {
		require.True(h.t, n.lanes[fresh].in == nil && n.lanes[tried].in == nil)
	}
}

func play(t *testing.T, ops []byte) []int {
	h := &history{t: t, s: New[*item]([]int{3, many}[len(ops)%2], time.Hour, nil), now: time.Hour, pauses: map[string]time.Duration{}}
	for i := range 24 {
		h.items = append(h.items, &modelItem{item: &item{namespace: string("aaab"[i%4] + byte(i%3))}})
	}
	for ops = ops[:min(len(ops), 3*historyOps+1)]; len(ops) >= 3; ops = ops[3:] {
		h.step(ops[0], ops[1], ops[2])
	}
	h.settle()
	return h.sent
}

// FuzzSchedule takes a Schedule, with few places or many, through a history, twice. Run it with
// -fuzzminimizetime 10x, or most of the time goes into minimizing.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{1, 0, 0, 7, 0, 0, 10, 0, 4, 1, 0, 0, 7, 0, 0, 12, 0, 5, 7, 0, 0, 10, 0, 1}) // fail, hold, retry, pass
	for seed := range int(workload.Seeds(40)) {
		history := make([]byte, 3*historyOps+seed%2)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(history)
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, ops []byte) { require.Equal(t, play(t, ops), play(t, ops)) })
}
