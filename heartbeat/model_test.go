package heartbeat

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/workload"
)

// item is the smallest element of a Schedule.
type item struct {
	slot  Slot[*item]
	key   Gate
	tried bool
	pass  Pass // of its latest request
}

func (it *item) Slot() *Slot[*item] { return &it.slot }
func (it *item) Gate() Gate         { return it.key }
func (it *item) Tried() bool        { return it.tried }

type place uint8

const (
	idle place = iota
	waiting
	ready
	flying
)

// modelItem is where an item should be.
type modelItem struct {
	real    *item
	place   place
	at      time.Duration // until when it waits, or when it is due
	pending bool
	since   time.Duration
	settled bool // Done has judged its request, or Abandon
}

func (it *modelItem) put(p place, at time.Duration) {
	if it.place != flying {
		it.place, it.at = p, at
	}
}

func (it *modelItem) mark(now time.Duration) {
	if !it.pending {
		it.pending, it.since = true, now
	}
}

// run is one history of a Schedule, with the places of its items.
type run struct {
	t      *testing.T
	s      *Schedule[*item]
	items  []*modelItem
	now    time.Duration
	unique time.Duration
}

const (
	runItems = 20  // fewer than unparkBatch
	runOps   = 600 // see run.step
)

var (
	runKeys    = []Gate{{"a", "create"}, {"a", "patch"}, {"b", "create"}}
	runSteps   = []time.Duration{0, 0, 1, time.Millisecond, time.Second, 5 * time.Second, 40 * time.Second, 5 * time.Minute}
	runResults = []Result{None, Passed, Passed, PushedBack, Failed, Failed, Denied, Denied}
)

// step does one operation: three bytes say which, with which item, and when.
func (r *run) step(op, which, when byte) {
	it := r.items[int(which)%len(r.items)]
	span := runSteps[when%8]
	r.unique += 1009 // more than all steps of a nanosecond, and less than one of a millisecond
	at := r.now + span + r.unique
	result, retryAfter := runResults[when%8], runSteps[when/8%8]*time.Duration(when/64%2)
	switch op % 16 {
	case 0:
		r.s.Wait(it.real, at)
		it.pending = false
		it.put(waiting, at)
	case 1:
		r.s.Retry(it.real, at, r.now)
		it.mark(r.now)
		it.put(waiting, at)
	case 2, 3, 4, 5:
		hard, due := op&16 > 0, at-time.Minute
		r.s.Ready(it.real, due, hard, r.now)
		it.mark(r.now)
		if it.place == ready {
			due = min(due, it.at)
		}
		it.put(ready, due)
	case 6:
		r.s.Remove(it.real)
		it.pending = false
		it.put(idle, 0)
	case 7:
		r.due()
	case 8, 9, 10:
		r.next()
	case 11, 12:
		if it.place == flying {
			r.respond(it, result, retryAfter, op&16 > 0)
		}
	case 13:
		r.now += span
	case 14:
		it.real.key = runKeys[int(when)%len(runKeys)]
	case 15:
		switch {
		case op >= 248:
			r.s.Hurry(r.now)
		case it.place == flying && !it.settled:
			r.s.Slow(&it.real.pass, r.now)
		}
	}
	r.check()
}

// due requires that Due returns the item that has waited until the earliest time.
func (r *run) due() (ok bool) {
	want := r.earliest(func(it *modelItem) bool { return it.place == waiting && it.at <= r.now })
	got, ok := r.s.Due(r.now)
	require.Equal(r.t, want != nil, ok)
	if ok {
		require.Same(r.t, want.real, got)
		want.place = idle
	}
	return ok
}

// next requires that Next returns the right item, if there is one: an item of an open gate
// in its turn, or one of a closed gate that nothing probes.
func (r *run) next() (ok bool) {
	until, _, paused := r.s.Pause(r.now)
	request, hasRequest := r.s.NextRequest(r.now)
	probing := make(map[Gate]bool)
	for key, g := range r.s.gates {
		probing[key] = g.probing
	}
	got, pass, ok := r.s.Next(r.now)
	if !ok {
		later, more := r.s.NextRequest(r.now)
		require.True(r.t, !more || later > r.now, "Next has no result, and should be called again")
		for _, it := range r.items {
			require.True(r.t, paused || it.place != ready || r.gateOf(it) != nil, "an item waits for no gate")
		}
		return false
	}
	require.True(r.t, hasRequest && request <= r.now, "no time was given")
	require.True(r.t, !paused || until <= r.now && pass.probe, "a request in a pause")
	i := slices.IndexFunc(r.items, func(it *modelItem) bool { return it.real == got })
	it := r.items[i]
	require.Equal(r.t, ready, it.place)
	require.Equal(r.t, got.key, pass.Gate)
	if g := r.s.gates[got.key]; g != nil {
		require.False(r.t, probing[got.key], "two probes at a time")
		require.True(r.t, g.probing && pass.probed == g.round)
	} else {
		lane := func(q *Queue[*item]) bool { return q.Len() == 0 || it.at <= q.first() }
		require.True(r.t, lane(&r.s.ready.soft) || lane(&r.s.ready.hard), "not the first of its lane")
	}
	got.pass = pass
	it.place, it.settled = flying, false
	return true
}

// gateOf returns the gate that holds an item up, nil if there is none.
func (r *run) gateOf(it *modelItem) *gate[*item] {
	for _, g := range r.s.gates {
		if g.parked.holds(it.real.slot.in) {
			return g
		}
	}
	return nil
}

func (r *run) earliest(accept func(*modelItem) bool) (first *modelItem) {
	for _, it := range r.items {
		if accept(it) && (first == nil || it.at < first.at) {
			first = it
		}
	}
	return first
}

// respond gives the response to the request for an item.
func (r *run) respond(it *modelItem, result Result, retryAfter time.Duration, abandon bool) {
	key := it.real.pass.Gate
	if abandon {
		r.s.Abandon(&it.real.pass, result, retryAfter, r.now)
	} else {
		r.s.Done(it.real, it.real.pass, result, retryAfter, r.now)
		it.place = idle
		it.real.tried = result == Failed || result == Denied
	}
	it.settled = true
	switch until, _, paused := r.s.Pause(r.now); {
	case result == Passed:
		require.NotContains(r.t, r.s.gates, key, "the gate stays closed")
	case result == PushedBack && retryAfter > 0:
		require.True(r.t, paused && until >= r.now+retryAfter, "the server is to be left alone")
	}
	require.Equal(r.t, r.s.Failures(key) > 0, r.s.gates[key] != nil && r.s.gates[key].failures > 0)
}

func (r *run) check() {
	s := r.s
	var pending []time.Duration
	held := 0
	for _, it := range r.items {
		slot := it.real.Slot()
		isHeld := it.place == waiting || it.place == ready
		ok := s.InFlight(it.real) == (it.place == flying) &&
			(slot.in == nil) == (it.place == idle) &&
			(slot.in == &s.waiting) == (it.place == waiting) &&
			(!isHeld || slot.in.At(it.real) == it.at) &&
			(slot.pending != 0) == it.pending && (!it.pending || s.pending.At(it.real) == it.since)
		if !ok {
			require.Fail(r.t, "wrong place", "%+v instead of %+v", slot, it)
		}
		require.True(r.t, it.pending && it.place != flying && s.gates[it.real.key] != nil || !s.Held(it.real))
		if isHeld {
			held++
		}
		if it.pending {
			pending = append(pending, it.since)
		}
	}
	_, gotPending, gotSince := s.Backlog()
	require.Equal(r.t, len(pending), gotPending)
	if len(pending) > 0 {
		require.Equal(r.t, slices.Min(pending), gotSince)
	}
	if behind, ok := s.Blocked(func(*item) bool { return true }); ok {
		require.NotNil(r.t, r.gateOf(&modelItem{real: behind}))
	}
	r.checkQueues(held)
}

// checkQueues requires that each queue is a heap that knows its items, that no queue holds
// another item or keeps one alive, and that each closed gate is probed at its time.
func (r *run) checkQueues(want int) {
	s, probing := r.s, 0
	queues := []*Queue[*item]{&s.waiting, &s.flight, &s.ready.soft, &s.ready.hard}
	parks := slices.Clone(s.draining)
	for _, g := range s.gates {
		parks = append(parks, &g.parked)
		require.True(r.t, g.index == 0 == s.isBusy(g) || g.slow == 1 && g.parked.fresh.Len() == 0 && !g.probing)
		require.True(r.t, g.index == 0 || s.probes.At(g) <= max(s.probeAt(g), g.until, g.pushed, g.last+slowAfter, r.now+newcomerAfter), "probed too late")
		if g.probing && g.hangs {
			probing++
		}
	}
	require.LessOrEqual(r.t, probing, runItems)
	for _, p := range parks {
		queues = append(queues, &p.fresh.soft, &p.fresh.hard, &p.tried)
	}
	held := 0
	for _, q := range queues {
		held += q.Len()
		for i, n := range q.nodes {
			if int(*q.index(n.item)) != i+1 || n.at < q.nodes[max(0, i-1)/2].at {
				require.Fail(r.t, "not a heap", "at %d of %d", i, q.Len())
			}
		}
		for _, n := range q.nodes[:cap(q.nodes)][q.Len():] {
			require.Nil(r.t, n.item)
		}
	}
	require.Equal(r.t, want, held)
}

// settle requires that everything is handled soon after the last failure.
func (r *run) settle() {
	for _, it := range r.items {
		if it.place == flying {
			r.respond(it, Passed, 0, false)
		}
	}
	end := r.now + 30*time.Minute // longer than all steps, delays, and pauses together
	for r.now <= end {
		for r.due() {
		}
		for r.next() {
			for _, it := range r.items {
				if it.place == flying {
					r.respond(it, Passed, 0, false)
					r.s.Remove(it.real)
					it.pending = false
				}
			}
			r.check()
		}
		at, ok := wakeOf(r.s, r.now)
		if !ok {
			break
		}
		require.Greater(r.t, at, r.now)
		r.now = at
	}
	for _, it := range r.items {
		require.Equal(r.t, idle, it.place)
	}
	require.Zero(r.t, r.s.probing)
	require.Empty(r.t, r.s.gates)
}

// FuzzSchedule takes a Schedule through a history. Run it with -fuzzminimizetime 10x, or
// most of the time goes into minimizing.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{2, 0, 0, 8, 0, 0, 11, 0, 4, 2, 0, 0, 8, 0, 0, 13, 0, 5, 8, 0, 0, 11, 0, 1})  // fail, park, probe, pass
	f.Add([]byte{2, 0, 0, 2, 1, 0, 8, 0, 0, 8, 0, 0, 11, 0, 3, 11, 1, 3, 13, 0, 5, 31, 0, 0}) // two push-backs
	for seed := range byte(workload.Seeds(100)) {
		history := make([]byte, 3*runOps)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(history)
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, history []byte) {
		r := &run{t: t, s: NewSchedule[*item](nil), now: time.Hour}
		for range runItems {
			r.items = append(r.items, &modelItem{real: &item{key: Gate{"a", "create"}}})
		}
		for history = history[:min(len(history), 3*runOps)]; len(history) >= 3; history = history[3:] {
			r.step(history[0], history[1], history[2])
		}
		r.settle()
	})
}
