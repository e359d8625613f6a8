package tracker

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCounterCounts(t *testing.T) {
	const second = time.Second
	var c counter
	_, ok := c.count(0, math.MaxInt64)
	assert.False(t, ok, "it is closed at first")
	assert.Less(t, c.last(), -300*24*time.Hour)

	c.open()
	c.occurred(second)
	assert.Equal(t, second, c.last())
	for i, at := range []time.Duration{second, 3 * second, 2 * second, 7*second + 1999} {
		n, ok := c.count(at, 5*second)
		require.True(t, ok)
		assert.Equal(t, i+1, n)
	}
	assert.Equal(t, 7*second+time.Microsecond, c.last(), "the latest, in microseconds")

	_, ok = c.count(12*second+time.Microsecond, 5*second)
	assert.False(t, ok, "a window later")
	n, ok := c.count(12*second+999, 5*second)
	assert.True(t, ok, "just before")
	assert.Equal(t, 5, n)

	assert.Equal(t, 5, c.take())
	assert.Zero(t, c.take(), "they are taken once")
	assert.Equal(t, 12*second, c.last(), "the time stays")
	n, _ = c.count(0, 5*second)
	assert.Equal(t, 1, n)
	assert.Equal(t, 12*second, c.last(), "an earlier one changes no time")

	assert.Equal(t, 1, c.close())
	_, ok = c.count(12*second, 5*second)
	assert.False(t, ok, "closed")
	assert.Zero(t, c.close())
	c.occurred(20 * second)
	assert.Zero(t, c.take())
	assert.Equal(t, 20*second, c.last())
}

// A counter that nobody takes from is full at some time. It loses nothing.
func TestFullCounter(t *testing.T) {
	var c counter
	c.open()
	c.occurred(0)
	for i := range counterMax {
		n, ok := c.count(time.Duration(i), time.Hour)
		require.True(t, ok)
		require.Equal(t, i+1, n)
	}
	_, ok := c.count(0, time.Hour)
	assert.False(t, ok)
	assert.Equal(t, counterMax, c.take())
	_, ok = c.count(0, time.Hour)
	assert.True(t, ok)
}

// Times are rounded down, also before the epoch, and stay in order, however far from
// it they are.
func FuzzCounterTime(f *testing.F) {
	for _, at := range []time.Duration{0, 1, -1, time.Microsecond, -time.Microsecond, 999, -1001, counterEpoch, -counterEpoch, counterEpoch - 1, math.MaxInt64, math.MinInt64} {
		f.Add(int64(at), int64(at)-1)
	}
	f.Fuzz(func(t *testing.T, a, b int64) {
		at, other := time.Duration(a), time.Duration(b)
		got := lastOf(pack(at))
		assert.Zero(t, got%time.Microsecond)
		if at >= -counterEpoch && at < counterEpoch {
			assert.LessOrEqual(t, got, at)
			assert.Less(t, at-got, time.Microsecond)
		}
		if at <= other {
			assert.LessOrEqual(t, got, lastOf(pack(other)))
		}
		var c counter
		c.open()
		c.occurred(at)
		assert.Equal(t, got, c.last())
		assert.Zero(t, c.take(), "a time is not taken for a count")
		_, ok := c.count(got, time.Minute)
		assert.True(t, ok, "and does not close the counter")
	})
}

// Each occurrence that was counted is returned once, whoever takes, closes, and opens
// at the same time.
func TestCounterIsShared(t *testing.T) {
	const goroutines, each = 4, 20000
	var c counter
	c.open()
	c.occurred(0)
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for n := 0; n < each; {
				if _, ok := c.count(time.Duration(n)*time.Microsecond, time.Hour); ok {
					n++
				} else {
					runtime.Gosched()
				}
			}
		})
	}
	var done atomic.Bool
	var taking sync.WaitGroup
	taken := 0
	taking.Go(func() {
		rng := rand.New(rand.NewPCG(1, 0))
		for !done.Load() {
			switch rng.IntN(3) {
			case 0:
				taken += c.take()
			case 1:
				taken += c.close()
			case 2:
				c.open()
			}
		}
	})
	wg.Wait()
	done.Store(true)
	taking.Wait()
	assert.Equal(t, goroutines*each, taken+c.close())
	assert.Equal(t, (each-1)*time.Microsecond, c.last())
}
