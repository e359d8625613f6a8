package heartbeat

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// item is the smallest element of a Schedule.
type item struct {
	slot Slot[*item]
	key  Gate
}

func (it *item) Slot() *Slot[*item] { return &it.slot }
func (it *item) Gate() Gate         { return it.key }

type place uint8

const (
	idle place = iota
	waiting
	ready
	flying
)

// model is a Schedule with flat lists: slow, but easy to verify. All due times
// must differ.
type model struct {
	items    []*modelItem
	gates    map[Gate]*modelGate
	server   modelGate
	round    int
	paused   time.Duration
	answered time.Duration
	hardRun  int
	maxDelay time.Duration
}

type modelItem struct {
	real    *item
	place   place
	at      time.Duration // until when it waits, or when it is due
	hard    bool
	parked  *modelGate // it was ready when this gate was closed
	pending bool
	since   time.Duration

	sent   Gate       // the key at the time of the request
	probes *modelGate // the gate that the request probes
	pass   modelPass
}

type modelPass struct {
	round int
	probe bool
}

type modelGate struct {
	closed, probing       bool
	failures              int
	until, since, probeAt time.Duration
}

func (m *model) put(it *modelItem, p place, at time.Duration) {
	if it.place != flying {
		it.place, it.at, it.parked = p, at, nil
	}
}

func (m *model) mark(it *modelItem, now time.Duration) {
	if !it.pending {
		it.pending, it.since = true, now
	}
}

func (m *model) ready(it *modelItem, due time.Duration, hard bool, now time.Duration) {
	m.mark(it, now)
	it.hard = hard
	parked := it.parked
	if it.place == ready {
		due = min(due, it.at)
	}
	m.put(it, ready, due)
	if parked != nil && parked == m.gates[it.real.key] {
		it.parked = parked
	}
}

func (m *model) remove(it *modelItem) {
	it.pending = false
	m.put(it, idle, 0)
}

func (m *model) due(now time.Duration) *modelItem {
	it := m.earliest(func(it *modelItem) bool { return it.place == waiting && it.at <= now })
	if it != nil {
		it.place = idle
	}
	return it
}

func (m *model) earliest(accept func(*modelItem) bool) (first *modelItem) {
	for _, it := range m.items {
		if accept(it) && (first == nil || it.at < first.at) {
			first = it
		}
	}
	return first
}

// open reports whether g is the gate of no key anymore.
func (m *model) open(g *modelGate) bool {
	for _, other := range m.gates {
		if other == g {
			return false
		}
	}
	return true
}

func (m *model) admit(now time.Duration) (p modelPass, ok bool) {
	if m.server.closed && (m.server.probing || now < m.server.until) {
		return p, false
	}
	m.server.probing = m.server.closed
	return modelPass{m.round, m.server.closed}, true
}

func (m *model) next(now time.Duration) *modelItem {
	if m.server.closed && (m.server.probing || now < m.server.until) {
		return nil
	}
	for _, it := range m.items {
		if it.parked != nil && m.open(it.parked) {
			it.parked = nil
		}
	}
	for key, g := range m.gates {
		if g.probing || g.probeAt > now {
			continue
		}
		if it := m.earliest(func(it *modelItem) bool { return it.parked == g }); it != nil {
			it.parked, g.probeAt = nil, now+time.Second
		} else if g.probeAt = g.until + gateKept; g.probeAt <= now {
			delete(m.gates, key)
		}
	}
	for {
		it := m.earliest(func(it *modelItem) bool { return it.place == ready && it.parked == nil && !it.hard })
		hard := m.earliest(func(it *modelItem) bool { return it.place == ready && it.parked == nil && it.hard })
		switch {
		case hard == nil:
		case it == nil, hard.at <= now && m.hardRun < 3, hard.at > now && hard.at <= it.at:
			it = hard
		}
		if it == nil {
			return nil
		}
		g := m.gates[it.real.key]
		if g != nil && (g.probing || now < g.until) {
			it.parked = g
			continue
		}
		if g != nil {
			g.probing = true
		}
		if m.hardRun = min(m.hardRun+1, 3); !it.hard {
			m.hardRun = 0
		}
		it.pass, _ = m.admit(now)
		it.place, it.sent, it.probes = flying, it.real.key, g
		return it
	}
}

func (m *model) giveBack(p modelPass, r Result, retryAfter, now time.Duration) {
	g := &m.server
	if p.probe {
		g.probing = false
	}
	switch {
	case r == PushedBack && (!g.closed || p.round == m.round):
		g.failures++
		m.round++
		retryAfter = max(retryAfter, doubled(5*time.Second, 5*time.Minute, g.failures))
		if !g.closed {
			g.closed, g.since = true, now
		}
		g.until = max(g.until, now+retryAfter)
	case r == PushedBack && retryAfter > 0:
		g.until = max(g.until, now+retryAfter)
	case r == Passed, r == Denied:
		m.answered = now
		if p.probe {
			m.paused += now - g.since
			*g = modelGate{}
		}
	}
}

func doubled(first, limit time.Duration, n int) time.Duration {
	return min(first<<min(n-1, 20), limit)
}

func (m *model) abandon(it *modelItem, r Result, retryAfter, now time.Duration) {
	m.giveBack(it.pass, r, retryAfter, now)
	g := m.gates[it.sent]
	probed := g != nil && it.probes == g
	it.pass, it.probes = modelPass{round: -1}, nil
	if probed {
		g.probing = false
	}
	switch {
	case r == Passed:
		delete(m.gates, it.sent)
		return
	case (r == Failed || r == Denied) && (g == nil || probed):
		if g == nil {
			g = &modelGate{since: now}
			m.gates[it.sent] = g
		}
		g.failures++
		delay := doubled(time.Second, 2*time.Minute, g.failures)
		if r == Denied {
			delay = 2 * time.Minute
		}
		if m.maxDelay > 0 {
			delay = min(delay, m.maxDelay)
		}
		g.until = max(g.until, now+delay)
	}
	if g != nil && !g.probing {
		g.probeAt = g.until
	}
}

func (m *model) hurry(now time.Duration) {
	m.maxDelay = time.Second
	for _, g := range m.gates {
		if !g.probing {
			g.until, g.probeAt = now, now
		}
	}
}

func (m *model) wake(now time.Duration) (at time.Duration, ok bool) {
	earliest := func(t time.Duration) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	isReady := false
	for _, it := range m.items {
		if it.place == waiting {
			earliest(it.at)
		}
		isReady = isReady || it.place == ready && (it.parked == nil || m.open(it.parked))
	}
	switch {
	case m.server.probing:
	case isReady:
		earliest(max(now, m.server.until))
	default:
		for _, g := range m.gates {
			if !g.probing {
				earliest(max(g.probeAt, m.server.until))
			}
		}
	}
	return at, ok
}

// run is one history of a Schedule and of its model.
type run struct {
	t      *testing.T
	s      *Schedule[*item]
	m      *model
	now    time.Duration
	unique time.Duration
	passes []Pass
	lists  []modelPass
}

const (
	runItems = 20  // fewer than unparkBatch
	runOps   = 600 // see run.step
)

func newRun(t *testing.T) *run {
	r := &run{t: t, s: NewSchedule[*item](nil), m: &model{gates: map[Gate]*modelGate{}}, now: time.Hour}
	for range runItems {
		r.m.items = append(r.m.items, &modelItem{real: &item{key: Gate{"a", "create"}}})
	}
	return r
}

var (
	runKeys    = []Gate{{"a", "create"}, {"a", "patch"}, {"b", "create"}}
	runSteps   = []time.Duration{0, 0, 1, time.Millisecond, time.Second, 5 * time.Second, 40 * time.Second, 5 * time.Minute}
	runResults = []Result{None, Passed, Passed, PushedBack, Failed, Failed, Denied, Denied}
)

// step does one operation: three bytes say which, with which item, and when.
func (r *run) step(op, which, when byte) {
	it := r.m.items[int(which)%len(r.m.items)]
	span := runSteps[when%8]
	r.unique += 1009 // more than all steps of a nanosecond, and less than one of a millisecond
	at := r.now + span + r.unique
	result, retryAfter := runResults[when%8], runSteps[when/8%8]*time.Duration(when/64%2)
	switch op % 16 {
	case 0:
		r.s.Wait(it.real, at)
		it.pending = false
		r.m.put(it, waiting, at)
	case 1:
		r.s.Retry(it.real, at, r.now)
		r.m.mark(it, r.now)
		r.m.put(it, waiting, at)
	case 2, 3, 4, 5:
		hard := op&16 > 0
		r.s.Ready(it.real, at-time.Minute, hard, r.now)
		r.m.ready(it, at-time.Minute, hard, r.now)
	case 6:
		r.s.Remove(it.real)
		r.m.remove(it)
	case 7:
		got, ok := r.s.Due(r.now)
		r.same(r.m.due(r.now), got, ok)
	case 8, 9, 10:
		got, ok := r.s.Next(r.now)
		r.same(r.m.next(r.now), got, ok)
	case 11, 12:
		if it.place != flying {
			break
		}
		key := it.sent
		if op&16 > 0 {
			r.s.Abandon(it.real, key, result, retryAfter, r.now)
			r.m.abandon(it, result, retryAfter, r.now)
			break
		}
		r.s.Done(it.real, key, result, retryAfter, r.now)
		r.m.abandon(it, result, retryAfter, r.now)
		it.place = idle
		r.expired(it, key)
	case 13:
		r.now += span
	case 14:
		it.real.key = runKeys[int(when)%len(runKeys)]
	case 15:
		r.list(op, result, retryAfter)
	}
	r.check()
}

func (r *run) list(op byte, result Result, retryAfter time.Duration) {
	switch {
	case op >= 248:
		r.s.Hurry(r.now)
		r.m.hurry(r.now)
	case op&16 > 0 || len(r.passes) == 0:
		got, ok := r.s.Admit(r.now)
		want, wantOK := r.m.admit(r.now)
		require.Equal(r.t, wantOK, ok)
		if ok {
			r.passes, r.lists = append(r.passes, got), append(r.lists, want)
		}
	default:
		r.s.Return(r.passes[0], result, retryAfter, r.now)
		r.m.giveBack(r.lists[0], result, retryAfter, r.now)
		r.passes, r.lists = r.passes[1:], r.lists[1:]
	}
}

func (r *run) same(want *modelItem, got *item, ok bool) {
	r.t.Helper()
	if ok != (want != nil) || ok && got != want.real {
		require.Fail(r.t, "wrong item", "%+v instead of %+v", got, want)
	}
}

func (r *run) expired(it *modelItem, key Gate) {
	before := r.now - 2*time.Minute
	got := r.s.Expired(it.real, key, before)
	g, n := r.m.gates[key], 0
	for _, other := range r.m.items {
		if g != nil && g.since <= before && r.m.answered > g.since && (other == it || other.parked == g) && other.pending && other.since <= before {
			require.True(r.t, slices.Contains(got, other.real))
			n++
		}
	}
	require.Len(r.t, got, n)
}

func (r *run) check() {
	s, m := r.s, r.m
	readyCount, pending, held, since, blocked := 0, 0, 0, time.Duration(0), false
	for _, it := range m.items {
		slot := it.real.Slot()
		open := it.parked == nil || m.open(it.parked)
		ok := slot.flying == (it.place == flying) && s.InFlight(it.real) == slot.flying &&
			(slot.in != nil) == (it.place == waiting || it.place == ready) &&
			(slot.in == &s.waiting) == (it.place == waiting) &&
			(slot.in == nil || slot.in.at(it.real).at == it.at && slot.in.at(it.real).item == it.real) &&
			(slot.pending != 0) == it.pending && (!it.pending || s.pending.at(it.real).at == it.since)
		if !ok {
			require.Fail(r.t, "wrong place", "%+v instead of %+v", slot, it)
		}
		if it.place == ready && open {
			readyCount++
		}
		if slot.in != nil {
			held++
		}
		blocked = blocked || it.place == ready && !open && !it.parked.probing
		if it.pending && (pending == 0 || it.since < since) {
			since = it.since
		}
		if it.pending {
			pending++
		}
	}
	gotReady, gotPending, gotSince := s.Backlog()
	require.Equal(r.t, []any{readyCount, pending, since}, []any{gotReady, gotPending, gotSince})
	wake, ok := m.wake(r.now)
	gotWake, gotOK := wakeOf(s, r.now)
	require.Equal(r.t, []any{wake, ok}, []any{gotWake, gotOK})
	total := m.paused
	if m.server.closed {
		total += r.now - m.server.since
	}
	until, gotTotal, closed := s.Pause(r.now)
	require.Equal(r.t, []any{m.server.until, total, m.server.closed}, []any{until, gotTotal, closed})
	behind, ok := s.Blocked(func(*item) bool { return true })
	require.Equal(r.t, blocked, ok)
	if ok && slices.Contains([]*queue[*item]{nil, &s.waiting, &s.soft, &s.hard}, behind.slot.in) {
		require.Fail(r.t, "not behind a gate")
	}
	r.checkQueues(held)
}

// checkQueues requires that each queue is a heap that knows its items, and that no
// queue holds another item or keeps one alive.
func (r *run) checkQueues(want int) {
	queues := append([]*queue[*item]{&r.s.waiting, &r.s.soft, &r.s.hard}, r.s.draining...)
	for _, g := range r.s.gates {
		queues = append(queues, &g.parked)
	}
	held := 0
	for _, q := range queues {
		held += q.Len()
		checkHeap(r.t, q)
	}
	require.Equal(r.t, want, held)
	require.Len(r.t, r.s.gates, len(r.m.gates))
}

func checkHeap(t *testing.T, q *queue[*item]) {
	for i, n := range q.nodes {
		if int(*q.index(n.item)) != i+1 || q.Less(i, max(0, i-1)/2) {
			require.Fail(t, "not a heap", "at %d of %d", i, q.Len())
		}
	}
	for _, n := range q.nodes[:cap(q.nodes)][len(q.nodes):] {
		require.Nil(t, n.item)
	}
}

func TestScheduleAgainstModel(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := newRun(t)
		for range runOps {
			n := rng.Uint32()
			r.step(byte(n), byte(n>>8), byte(n>>16))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Run it with -fuzzminimizetime 10x, or most of the time goes into minimizing.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{2, 0, 0, 8, 0, 0, 11, 0, 4, 2, 0, 0, 8, 0, 0, 13, 0, 5, 8, 0, 0, 11, 0, 1})  // fail, park, probe, pass
	f.Add([]byte{2, 0, 0, 2, 1, 0, 8, 0, 0, 8, 0, 0, 11, 0, 3, 11, 1, 3, 13, 0, 5, 31, 0, 0}) // two push-backs, a list
	f.Fuzz(func(t *testing.T, history []byte) {
		r := newRun(t)
		for history = history[:min(len(history), 3*runOps)]; len(history) >= 3; history = history[3:] {
			r.step(history[0], history[1], history[2])
		}
	})
}
