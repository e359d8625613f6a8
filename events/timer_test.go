package events

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	clocktesting "k8s.io/utils/clock/testing"
)

// fires reports whether the channel of a timer can be received from.
func fires(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestTimer(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	timer := timer{clock: clock}
	in := func(d time.Duration) time.Time { return clock.Now().Add(d) }
	assert.Nil(t, timer.set(time.Time{}))
	assert.True(t, fires(timer.set(in(0))))
	assert.True(t, fires(timer.set(in(-time.Hour))))

	timer.set(in(time.Minute))
	c := timer.set(in(time.Second))
	clock.Step(time.Second - 1)
	assert.False(t, fires(c))
	clock.Step(1)
	assert.True(t, fires(c))

	timer.set(in(time.Second))
	clock.Step(time.Second) // nobody receives
	c = timer.set(in(time.Second))
	assert.False(t, fires(c), "the tick is that of the time before")
	clock.Step(time.Second) // blocks if the clock still knows both
	assert.True(t, fires(c))

	timer.set(in(time.Second))
	assert.Nil(t, timer.set(time.Time{}))
	assert.False(t, clock.HasWaiters())
}

// A test of a controller steps its fake clock while the timer is set.
func TestTimerIsExactIfTheClockIsSteppedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, step := range []time.Duration{1, 5 * time.Millisecond, time.Minute, time.Hour} {
			stepped := true
			for n := int64(1); stepped; n++ {
				clock := &countdownClock{FakeClock: clocktesting.NewFakeClock(time.Now()), step: step}
				timer := timer{clock: clock}
				at := clock.FakeClock.Now().Add(10 * time.Minute)
				clock.n.Store(n)
				c := timer.set(at)
				stepped = clock.n.Load() <= 0
				clock.n.Store(0)
				if fires(c) && clock.FakeClock.Now().Before(at) {
					assert.True(t, stepped)
					c = timer.set(at)
				}
				assert.Equal(t, stepped && step == time.Hour, fires(c))
				if rest := at.Sub(clock.FakeClock.Now()); rest > 0 {
					clock.Step(rest)
					assert.True(t, fires(c), "a step of %v, %d", step, n)
				}
			}
		}
	})
}

// fastClock runs faster than time passes.
type fastClock struct{ *clocktesting.FakeClock }

func (c fastClock) Now() time.Time {
	c.Step(time.Second)
	return c.FakeClock.Now()
}

func TestTimerOfAFastClock(t *testing.T) {
	clock := fastClock{clocktesting.NewFakeClock(time.Now())}
	timer := timer{clock: clock}
	begin := clock.Now()
	at := begin.Add(time.Hour)
	assert.True(t, fires(timer.set(at)), "it can have been stepped")
	c := timer.set(at)
	assert.NotNil(t, c)
	assert.False(t, fires(c), "that would be a hot loop")
	assert.Less(t, clock.Since(begin), time.Minute)
}
