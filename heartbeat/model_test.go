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
	pass Pass // of its latest request
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
	failed   map[Gate]bool // open gates whose latest request has failed
	server   modelGate
	round    int
	paused   time.Duration
	answered time.Duration
	hardRun  int
	maxDelay time.Duration
	now      time.Duration
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

// shut reports whether no request may pass.
func (g *modelGate) shut(now time.Duration) bool {
	return g.closed && (g.probing || now < g.until)
}

func (it *modelItem) put(p place, at time.Duration) {
	if it.place != flying {
		it.place, it.at, it.parked = p, at, nil
	}
}

func (it *modelItem) mark(now time.Duration) {
	if !it.pending {
		it.pending, it.since = true, now
	}
}

func (m *model) ready(it *modelItem, due time.Duration, hard bool) {
	it.mark(m.now)
	it.hard = hard
	parked := it.parked
	if it.place == ready {
		due = min(due, it.at)
	}
	it.put(ready, due)
	if parked == m.gates[it.real.key] {
		it.parked = parked
	}
}

func (m *model) earliest(accept func(*modelItem) bool) (first *modelItem) {
	for _, it := range m.items {
		if accept(it) && (first == nil || it.at < first.at) {
			first = it
		}
	}
	return first
}

func (m *model) admit() (p modelPass, ok bool) {
	if m.server.shut(m.now) {
		return p, false
	}
	m.server.probing = m.server.closed
	return modelPass{m.round, m.server.closed}, true
}

func (m *model) next() *modelItem {
	if m.server.shut(m.now) {
		return nil
	}
	for key, g := range m.gates {
		if g.probing || g.probeAt > m.now {
			continue
		}
		if it := m.earliest(func(it *modelItem) bool { return it.parked == g }); it != nil {
			it.parked, g.probeAt = nil, m.now+time.Second
		} else if g.probeAt = g.until + gateKept; g.probeAt <= m.now {
			delete(m.gates, key)
		}
	}
	for {
		it := m.earliest(func(it *modelItem) bool { return it.place == ready && it.parked == nil && !it.hard })
		hard := m.earliest(func(it *modelItem) bool { return it.place == ready && it.parked == nil && it.hard })
		switch {
		case hard == nil:
		case it == nil, hard.at <= m.now && m.hardRun < 3, hard.at > m.now && hard.at <= it.at:
			it = hard
		}
		if it == nil {
			return nil
		}
		g := m.gates[it.real.key]
		if g != nil && g.shut(m.now) {
			it.parked = g
			continue
		}
		if g != nil {
			g.probing = true
		}
		if m.hardRun = min(m.hardRun+1, 3); !it.hard {
			m.hardRun = 0
		}
		it.pass, _ = m.admit()
		it.place, it.sent, it.probes = flying, it.real.key, g
		return it
	}
}

func (m *model) giveBack(p modelPass, r Result, retryAfter time.Duration) {
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
			g.closed, g.since = true, m.now
		}
		g.until = max(g.until, m.now+retryAfter)
	case r == PushedBack && retryAfter > 0:
		g.until = max(g.until, m.now+retryAfter)
	case r == Passed, r == Denied:
		m.answered = m.now
		if p.probe {
			m.paused += m.now - g.since
			*g = modelGate{}
		}
	}
}

func doubled(first, limit time.Duration, n int) time.Duration {
	return min(first<<min(n-1, 20), limit)
}

func (m *model) abandon(it *modelItem, r Result, retryAfter time.Duration) {
	m.giveBack(it.pass, r, retryAfter)
	g := m.gates[it.sent]
	probed := g != nil && it.probes == g
	it.pass, it.probes = modelPass{round: -1}, nil
	if probed {
		g.probing = false
	}
	switch {
	case r == Passed:
		delete(m.failed, it.sent)
		delete(m.gates, it.sent)
		for _, other := range m.items {
			if other.parked == g {
				other.parked = nil
			}
		}
		return
	case r == Failed && g == nil && !m.failed[it.sent]:
		m.failed[it.sent] = true
	case (r == Failed || r == Denied) && (g == nil || probed):
		if g == nil {
			delete(m.failed, it.sent)
			g = &modelGate{closed: true, since: m.now}
			m.gates[it.sent] = g
		}
		g.failures++
		delay := doubled(time.Second, 2*time.Minute, g.failures)
		if m.maxDelay > 0 {
			delay = min(delay, m.maxDelay)
		}
		g.until = max(g.until, m.now+delay)
	}
	if g != nil && !g.probing {
		g.probeAt = g.until
	}
}

func (m *model) wake() (at time.Duration, ok bool) {
	var times []time.Duration
	isReady := false
	for _, it := range m.items {
		if it.place == waiting {
			times = append(times, it.at)
		}
		isReady = isReady || it.place == ready && it.parked == nil
	}
	switch {
	case m.server.probing:
	case isReady:
		times = append(times, max(m.now, m.server.until))
	default:
		for _, g := range m.gates {
			if !g.probing {
				times = append(times, max(g.probeAt, m.server.until))
			}
		}
	}
	if len(times) == 0 {
		return 0, false
	}
	return slices.Min(times), true
}

// run is one history of a Schedule and of its model.
type run struct {
	model
	t      *testing.T
	s      *Schedule[*item]
	unique time.Duration
	passes []Pass
	lists  []modelPass
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
		hard := op&16 > 0
		r.s.Ready(it.real, at-time.Minute, hard, r.now)
		r.ready(it, at-time.Minute, hard)
	case 6:
		r.s.Remove(it.real)
		it.pending = false
		it.put(idle, 0)
	case 7:
		want := r.earliest(func(it *modelItem) bool { return it.place == waiting && it.at <= r.now })
		if want != nil {
			want.place = idle
		}
		got, ok := r.s.Due(r.now)
		r.same(want, got, ok)
	case 8, 9, 10:
		got, pass, ok := r.s.Next(r.now)
		if ok {
			got.pass = pass
		}
		r.same(r.next(), got, ok)
	case 11, 12:
		if it.place != flying {
			break
		}
		key := it.sent
		r.abandon(it, result, retryAfter)
		if op&16 > 0 {
			r.s.Abandon(&it.real.pass, result, retryAfter, r.now)
			break
		}
		r.s.Done(it.real, it.real.pass, result, retryAfter, r.now)
		it.place = idle
		r.expired(key)
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
		r.maxDelay = 100 * time.Millisecond
		for _, g := range r.gates {
			if !g.probing {
				g.until, g.probeAt = r.now, r.now
			}
		}
	case op&16 > 0 || len(r.passes) == 0:
		got, ok := r.s.Admit(r.now)
		want, wantOK := r.admit()
		require.Equal(r.t, wantOK, ok)
		if ok {
			r.passes, r.lists = append(r.passes, got), append(r.lists, want)
		}
	default:
		r.s.Return(r.passes[0], result, retryAfter, r.now)
		r.giveBack(r.lists[0], result, retryAfter)
		r.passes, r.lists = r.passes[1:], r.lists[1:]
	}
}

func (r *run) same(want *modelItem, got *item, ok bool) {
	r.t.Helper()
	if ok != (want != nil) || ok && got != want.real {
		require.Fail(r.t, "wrong item", "%+v instead of %+v", got, want)
	}
}

func (r *run) expired(key Gate) {
	const ttl = 2 * time.Minute
	for _, final := range []bool{true, false} {
		before, expired := r.now-ttl, false
		switch g := r.gates[key]; {
		case g == nil:
		case final && g.failures > 1:
			before, expired = r.now, true
		case r.answered <= before:
			g.since = g.until // an outage does not count
		default:
			expired = g.since <= before
		}
		var want []*item
		for _, it := range r.items {
			if expired && it.pending && it.since <= before && it.place != flying && it.real.key == key {
				want = append(want, it.real)
			}
		}
		require.ElementsMatch(r.t, want, r.s.Expired(key, final, ttl, r.now))
	}
}

func (r *run) check() {
	s, readyCount, heldCount, blocked := r.s, 0, 0, false
	var pending []time.Duration
	for _, it := range r.items {
		slot := it.real.Slot()
		held := it.place == waiting || it.place == ready
		ok := s.InFlight(it.real) == (it.place == flying) &&
			(slot.in == nil) == (it.place == idle) &&
			(slot.in == &s.waiting) == (it.place == waiting) &&
			(!held || slot.in.At(it.real) == it.at) &&
			(slot.pending != 0) == it.pending && (!it.pending || s.pending.At(it.real) == it.since)
		if !ok {
			require.Fail(r.t, "wrong place", "%+v instead of %+v", slot, it)
		}
		require.Equal(r.t, it.pending && it.place != flying && r.gates[it.real.key] != nil, s.Held(it.real))
		if it.place == ready && it.parked == nil {
			readyCount++
		}
		if held {
			heldCount++
		}
		blocked = blocked || it.parked != nil && !it.parked.probing
		if it.pending {
			pending = append(pending, it.since)
		}
	}
	since := time.Duration(0)
	if len(pending) > 0 {
		since = slices.Min(pending)
	}
	gotReady, gotPending, gotSince := s.Backlog()
	require.Equal(r.t, []any{readyCount, len(pending), since}, []any{gotReady, gotPending, gotSince})
	wake, ok := r.wake()
	gotWake, gotOK := wakeOf(s, r.now)
	require.Equal(r.t, []any{wake, ok}, []any{gotWake, gotOK})
	total := r.paused
	if r.server.closed {
		total += r.now - r.server.since
	}
	until, gotTotal, closed := s.Pause(r.now)
	require.Equal(r.t, []any{r.server.until, total, r.server.closed}, []any{until, gotTotal, closed})
	behind, ok := s.Blocked(func(*item) bool { return true })
	require.Equal(r.t, blocked, ok)
	if ok && slices.Contains([]*Queue[*item]{nil, &s.waiting, &s.ready.soft, &s.ready.hard, &s.flight}, behind.slot.in) {
		require.Fail(r.t, "not behind a gate")
	}
	r.checkQueues(heldCount)
}

// checkQueues requires that each queue is a heap that knows its items, and that no
// queue holds another item or keeps one alive.
func (r *run) checkQueues(want int) {
	queues := []*Queue[*item]{&r.s.waiting, &r.s.flight}
	ready := append([]*lanes[*item]{&r.s.ready}, r.s.draining...)
	for _, g := range r.s.gates {
		ready = append(ready, &g.parked)
	}
	for _, l := range ready {
		queues = append(queues, &l.soft, &l.hard)
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
	require.Len(r.t, r.s.gates, len(r.gates))
}

// FuzzSchedule compares a Schedule with the model. Run it with -fuzzminimizetime
// 10x, or most of the time goes into minimizing.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte{2, 0, 0, 8, 0, 0, 11, 0, 4, 2, 0, 0, 8, 0, 0, 13, 0, 5, 8, 0, 0, 11, 0, 1})  // fail, park, probe, pass
	f.Add([]byte{2, 0, 0, 2, 1, 0, 8, 0, 0, 8, 0, 0, 11, 0, 3, 11, 1, 3, 13, 0, 5, 31, 0, 0}) // two push-backs, a list
	for seed := range byte(100) {
		history := make([]byte, 3*runOps)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(history)
		f.Add(history)
	}
	f.Fuzz(func(t *testing.T, history []byte) {
		r := &run{t: t, s: NewSchedule[*item](nil), model: model{gates: map[Gate]*modelGate{}, failed: map[Gate]bool{}, now: time.Hour}}
		for range runItems {
			r.items = append(r.items, &modelItem{real: &item{key: Gate{"a", "create"}}})
		}
		for history = history[:min(len(history), 3*runOps)]; len(history) >= 3; history = history[3:] {
			r.step(history[0], history[1], history[2])
		}
	})
}
