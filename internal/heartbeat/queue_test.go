package heartbeat

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEmptySchedule(t *testing.T) {
	w := newWorld(t)
	it := &item{}
	for range 2 {
		_, ok := w.Due(math.MaxInt64)
		assert.False(t, ok)
		assert.Empty(t, w.send())
		_, ok = wakeOf(w.Schedule, w.now)
		assert.False(t, ok)
		w.Remove(it)
		assert.Zero(t, *it)
		w.Wait(it, w.now+time.Hour)
		w.Remove(it)
	}
}

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

// An item that is ready already keeps its turn, and can get an earlier one.
func TestReadyKeepsTheEarlierDueTime(t *testing.T) {
	w := newWorld(t)
	items := w.add("a", 4)
	w.Ready(items[0], w.now+time.Hour, false, w.now)
	w.Ready(items[3], 0, false, w.now)
	w.Retry(items[1], w.now+1, w.now)
	assert.Equal(t, []*item{items[3], items[0], items[2]}, w.send())
	for _, hard := range []bool{true, false} {
		w.Ready(items[1], w.now+1, hard, w.now)
	}
	w.Ready(items[0], 0, true, w.now) // in flight
	assert.Equal(t, items[1:2], w.send())
}

func TestHardDeadlines(t *testing.T) {
	w := newWorld(t)
	soft, hard := w.add("a", 3), w.add("a", 9)
	for i, it := range hard {
		w.Ready(it, time.Duration(i), true, w.now)
	}
	w.Ready(hard[8], 0, false, w.now)
	w.Ready(hard[8], w.now, true, w.now)
	assert.Equal(t, []*item{hard[0], hard[8], hard[1], soft[0], hard[2], hard[3], hard[4], soft[1], hard[5], hard[6], hard[7], soft[2]}, w.send())

	// A deadline that has not passed is as good as another.
	w = newWorld(t)
	soft, hard = w.add("a", 1), w.add("a", 1)
	w.Ready(hard[0], w.now+1, true, w.now)
	require.Equal(t, &w.soft, soft[0].slot.in)
	assert.Equal(t, append(soft, hard...), w.send())
}

func TestQueueShrinks(t *testing.T) {
	const n = 100_000
	s, items := NewSchedule[*item](nil), make([]item, n)
	for i := range items {
		s.Ready(&items[i], time.Duration(7*i%n), false, 0)
	}
	for i := range items {
		s.Remove(&items[i])
		for _, q := range []*queue[*item]{&s.soft, &s.pending} {
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
		it, _ = s.Next(now)
		s.Done(it, it.key, Passed, 0, now)
		s.Retry(it, now, now)
		s.Wait(it, now+n)
	}))
}
