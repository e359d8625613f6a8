package heartbeat

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// item is the least that can stand in a Queue.
type item struct{ slot int32 }

func (it *item) Slot() *int32 { return &it.slot }

func TestEmptyQueue(t *testing.T) {
	var q Queue[*item]
	check := func() {
		t.Helper()
		assert.Zero(t, q.Len())
		next, ok := q.Next()
		assert.False(t, ok)
		assert.Zero(t, next)
		assert.Zero(t, q.PopDue(make([]*item, 1), start))
		var it item
		q.Remove(&it)
		assert.Zero(t, it)
	}
	check()
	var it item
	q.Set(&it, start.Add(time.Hour))
	q.Remove(&it)
	check()
}

func TestPopDueIsNeverEarly(t *testing.T) {
	for _, at := range []time.Duration{0, 1, -1, time.Hour, -time.Hour} {
		var q Queue[*item]
		var first, it item
		buf := make([]*item, 2)
		q.Set(&first, start)
		q.Remove(&first)
		q.Set(&it, start.Add(at))

		assert.Zero(t, q.PopDue(buf, start.Add(at-1)))
		require.Equal(t, 1, q.PopDue(buf, start.Add(at)))
		assert.Same(t, &it, buf[0])
		assert.Nil(t, buf[1])
		assert.Zero(t, it)
	}
}

func TestPopDueInBatches(t *testing.T) {
	var q Queue[*item]
	items := make([]item, 10)
	for i := range items {
		// 0 7 4 1 8 5 2 9 6 3: in no order.
		q.Set(&items[7*i%10], start.Add(time.Duration(7*i%10)))
	}
	now := start.Add(7) // eight are due
	buf := make([]*item, 3)
	assert.Zero(t, q.PopDue(nil, now))
	require.Equal(t, 3, q.PopDue(buf, now))
	assert.Equal(t, []*item{&items[0], &items[1], &items[2]}, buf)
	require.Equal(t, 3, q.PopDue(buf, now))
	require.Equal(t, 2, q.PopDue(buf, now))
	require.Equal(t, 0, q.PopDue(buf, now))
	assert.Equal(t, []*item{&items[6], &items[7], &items[5]}, buf)
	next, ok := q.Next()
	assert.True(t, ok)
	assert.Equal(t, start.Add(8), next)
}

func TestSetMoves(t *testing.T) {
	var q Queue[*item]
	var a, b item
	q.Set(&a, start.Add(10))
	q.Set(&b, start.Add(20))
	next := func() time.Duration {
		at, _ := q.Next()
		return at.Sub(start)
	}
	for _, tt := range []struct{ to, next time.Duration }{
		{to: 30, next: 20}, // later
		{to: 15, next: 15}, // earlier
		{to: 15, next: 15}, // not at all
		{to: 20, next: 20}, // beside the other
		{to: -5, next: -5}, // before what was ever set
	} {
		q.Set(&a, start.Add(tt.to))
		assert.Equal(t, tt.next, next(), tt.to)
		assert.Equal(t, 2, q.Len())
	}
}

func TestRemove(t *testing.T) {
	var q Queue[*item]
	var a, b item
	q.Set(&a, start)
	q.Set(&b, start.Add(1))
	q.Remove(&a)
	assert.Zero(t, a)
	q.Remove(&a)
	assert.Equal(t, 1, q.Len())
	q.Set(&a, start.Add(2))
	buf := make([]*item, 2)
	assert.Equal(t, 2, q.PopDue(buf, start.Add(2)))
	assert.Equal(t, []*item{&b, &a}, buf)
}

// TestForeignItem: an item that says that it is in the queue and is not.
func TestForeignItem(t *testing.T) {
	const says = "heartbeat: item is in another queue, or its slot was written to"
	for name, slot := range map[string]int32{
		"another item's": root,
		"padding":        1,
		"beyond the end": root + 1,
		"negative":       -1,
		"the least":      math.MinInt32,
		"the greatest":   math.MaxInt32,
	} {
		t.Run(name, func(t *testing.T) {
			var q Queue[*item]
			var own item
			q.Set(&own, start)
			foreign := item{slot: slot}
			assert.PanicsWithValue(t, says, func() { q.Set(&foreign, start) })
			assert.PanicsWithValue(t, says, func() { q.Remove(&foreign) })
			assert.Equal(t, slot, foreign.slot)
			requireInvariants(t, &q)
		})
	}
	t.Run("in a new queue", func(t *testing.T) {
		var q Queue[*item]
		assert.PanicsWithValue(t, says, func() { q.Set(&item{slot: root}, start) })
	})
}

// TestQueueKeepsMonotonicReading: a timer that is set to Next must not depend on
// the wall clock.
func TestQueueKeepsMonotonicReading(t *testing.T) {
	var q Queue[*item]
	var it item
	now := time.Now()
	q.Set(&it, now.Add(time.Hour))
	next, _ := q.Next()
	assert.Equal(t, now.Add(time.Hour), next)
	assert.True(t, hasMonotonic(next))
}

// TestFarDeadlines: what does not fit is cut, and does not wrap around.
func TestFarDeadlines(t *testing.T) {
	var q Queue[*item]
	var near, far, past item
	q.Set(&near, start)
	q.Set(&far, start.AddDate(1000, 0, 0))
	q.Set(&past, start.AddDate(-1000, 0, 0))
	buf := make([]*item, 3)
	require.Equal(t, 2, q.PopDue(buf, start.AddDate(200, 0, 0)))
	assert.Equal(t, []*item{&past, &near}, buf[:2])
	require.Equal(t, 1, q.PopDue(buf, start.AddDate(1000, 0, 0)))
	assert.Same(t, &far, buf[0])
}

// TestMillion bounds what a queue of a million deadlines takes, and that it
// gives it back.
func TestMillion(t *testing.T) {
	const n = 1_000_000
	const room = 128 << 10
	items := make([]item, n)
	rng := newRand(t)
	before := heapInUse()
	var q Queue[*item]
	for i := range items {
		q.Set(&items[i], start.Add(time.Duration(rng.Int64N(int64(beat)))))
	}
	bytes := heapInUse() - before
	t.Logf("%.2f bytes an item", float64(bytes)/n)
	assert.LessOrEqual(t, bytes, int64(16*n+room))

	for i := range items {
		q.Remove(&items[i])
	}
	assert.LessOrEqual(t, heapInUse()-before, int64(room))
	runtime.KeepAlive(items)
	runtime.KeepAlive(&q)
}

func heapInUse() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestAllocations(t *testing.T) {
	const n = 100_000
	items := make([]item, n)
	buf := make([]*item, 256)
	var q Queue[*item]
	for i := range items {
		q.Set(&items[i], start.Add(time.Duration(7*i%n)))
	}
	i := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		q.Set(&items[i%n], start.Add(time.Duration(11*i%n)))
		i++
	}), "moving")
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		it := &items[i%n]
		q.Remove(it)
		q.Set(it, start.Add(n))
		i++
	}), "removing, and inserting again")
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		next, _ := q.Next()
		for _, it := range buf[:q.PopDue(buf, next.Add(n))] {
			q.Set(it, next.Add(2*n))
		}
	}), "taking a batch, and setting it anew")
	assert.Zero(t, testing.AllocsPerRun(n/256, func() {
		q.PopDue(buf, start.Add(time.Hour))
	}), "taking all")
	assert.Zero(t, q.Len())
}
