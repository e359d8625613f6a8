package events

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

var (
	pushBack = verdict{outcome: pushedBack}
	fine     = verdict{outcome: written}
)

// Requests that were under way together are pushed back together. That is one
// push-back, not many.
func TestGatePushBacksOfOneRoundAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(clock.RealClock{})
		var passes []pass
		for range 10 {
			passes = append(passes, enter(t, g))
		}
		start := time.Now()
		for _, p := range passes {
			g.leave(p, true, pushBack)
		}
		p := enter(t, g)
		assert.True(t, p.probe)
		assertBetween(t, 5*time.Second, 6*time.Second, time.Since(start))
		g.leave(p, true, fine)
		assert.False(t, enter(t, g).probe)
	})
}

// One of them may ask for more time than the first did.
func TestGateTakesTheLongestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(clock.RealClock{})
		one, two := enter(t, g), enter(t, g)
		start := time.Now()
		g.leave(one, true, pushBack)
		g.leave(two, true, verdict{outcome: pushedBack, retryAfter: time.Minute})
		g.leave(enter(t, g), true, fine)
		assert.Equal(t, time.Minute, time.Since(start))
	})
}

// A success of a request that was sent before the pause says nothing about the
// server as it is now.
func TestGateOldSuccessDoesNotOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(clock.RealClock{})
		one, two := enter(t, g), enter(t, g)
		start := time.Now()
		g.leave(one, true, pushBack)
		g.leave(two, true, fine)
		g.leave(enter(t, g), true, fine)
		assertBetween(t, 5*time.Second, 6*time.Second, time.Since(start))
	})
}

// Who was let through to try and had nothing to send lets the next one try.
func TestGatePassThatIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(clock.RealClock{})
		g.leave(enter(t, g), true, pushBack)
		one := enter(t, g)
		got := make(chan pass)
		go func() {
			p, _ := g.enter(context.Background())
			got <- p
		}()
		synctest.Wait()
		g.leave(one, false, verdict{})
		assert.True(t, (<-got).probe)
	})
}

func TestGateEnterEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(clock.RealClock{})
		g.leave(enter(t, g), true, pushBack)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, ok := g.enter(ctx)
		assert.False(t, ok, "during a pause")

		enter(t, g) // the probe, never given back
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, ok = g.enter(ctx)
		assert.False(t, ok, "while another tries")

		_, ok = newGate(clock.RealClock{}).enter(ctx)
		assert.False(t, ok, "with a context that has ended")
	})
}

func enter(t *testing.T, g *gate) pass {
	t.Helper()
	p, ok := g.enter(t.Context())
	require.True(t, ok)
	return p
}
