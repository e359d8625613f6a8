package heartbeat

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDueIsNeverEarly(t *testing.T) {
	for _, at := range []time.Duration{0, 1, -1, time.Hour, -time.Hour, math.MinInt64 + 1, math.MaxInt64} {
		w, it := newWorld(t), &item{}
		w.Wait(it, at)
		_, ok := w.Due(at - 1)
		assert.False(t, ok)
		wake, _ := wakeOf(w.Schedule, w.now)
		assert.Equal(t, at, wake)
		got, _ := w.Due(at)
		assert.Same(t, it, got)
		assert.Zero(t, *it)
	}
}

func TestQueueShrinks(t *testing.T) {
	const n = 100_000
	s, items := NewSchedule[*item](nil), make([]item, n)
	for i := range items {
		s.Ready(&items[i], time.Duration(7*i%n), false, 0)
	}
	for i := range items {
		s.Remove(&items[i])
		for _, q := range []*Queue[*item]{&s.ready.soft, &s.pending} {
			if cap(q.nodes) > max(minRoom, 4*q.Len()+4) {
				require.Fail(t, "too much room", "%d for %d", cap(q.nodes), q.Len())
			}
		}
	}
}

func TestAllocations(t *testing.T) {
	const n = 100_000
	s, items := NewSchedule[*item](nil), make([]item, n)
	for i := range items {
		s.Wait(&items[i], time.Duration(7*i%n))
	}
	s.Ready(&items[0], 0, true, 0)
	s.Ready(&items[1], 0, false, 0)
	now := time.Duration(n)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now++
		it, _ := s.Due(now)
		s.Ready(it, now, now%2 == 0, now)
		wakeOf(s, now)
		s.Backlog()
		it, pass, _ := s.Next(now)
		s.Done(it, pass, Passed, 0, now)
		s.Retry(it, now, now)
		s.Wait(it, now+n)
	}))
}
