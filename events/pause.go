package events

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

// The pause after a push-back: 5 seconds at first, twice as long each time, and
// at most 5 minutes; each with up to a fifth on top, so that the processes which
// were pushed back together do not come back together.
const (
	pauseFirst  = 5 * time.Second
	pauseMax    = 5 * time.Minute
	pauseJitter = 0.2
)

// retryAfterMax is for how long a server is left alone because it says so. None
// that means it asks for more than minutes, and one that is broken, or whose clock
// is, must not silence the recorder for good. Events are gone from the server
// after as long by default, and a request an hour burdens nobody.
const retryAfterMax = time.Hour

// pauseBackoff returns the sequence of pauses from its beginning.
func pauseBackoff() wait.Backoff {
	return wait.Backoff{Duration: pauseFirst, Factor: 2, Jitter: pauseJitter, Steps: 1 << 30, Cap: pauseMax}
}

// gate is what every request passes. A push-back closes it for all; when the
// pause is over, one request goes first, and the others follow when the server
// has answered it with anything but another push-back. It may be used
// concurrently.
type gate struct {
	clock clock.Clock

	mu      sync.Mutex
	backoff wait.Backoff
	until   time.Time     // zero: open
	round   uint64        // the number of pauses so far
	probing bool          // the one request is under way
	changed chan struct{} // closed at every change that those who wait must see
	paused  time.Duration // in all pauses that have ended
	since   time.Time     // when the pause began
}

// pass is the right to make one request.
type pass struct {
	round uint64 // when it was given out
	probe bool
}

func newGate(c clock.Clock) *gate {
	return &gate{clock: c, backoff: pauseBackoff(), changed: make(chan struct{})}
}

// enter waits until a request may be made. ok is false if ctx ended before.
// Every pass must be given back by leave.
func (g *gate) enter(ctx context.Context) (p pass, ok bool) {
	for ctx.Err() == nil {
		g.mu.Lock()
		now := g.clock.Now()
		if g.until.IsZero() {
			p = pass{round: g.round}
			g.mu.Unlock()
			return p, true
		}
		rest := g.until.Sub(now)
		if rest <= 0 && !g.probing {
			g.probing = true
			p = pass{round: g.round, probe: true}
			g.mu.Unlock()
			return p, true
		}
		changed := g.changed
		g.mu.Unlock()

		if rest <= 0 {
			// Somebody else is trying.
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		timer := g.clock.NewTimer(rest)
		select {
		case <-timer.C():
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return pass{}, false
}

// leave says what became of the request that was made with p. made is false if
// there was none after all.
func (g *gate) leave(p pass, made bool, v verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	if p.probe {
		g.probing = false
		g.wake()
	}
	switch {
	case !made:
	case v.outcome == pushedBack && p.round != g.round && !g.until.IsZero():
		// It was sent before the pause began, like the one that began it. It says
		// nothing new, but may ask for more time. Where the pause is over already,
		// it does say something new.
		g.extend(now, v.retryAfter)
	case v.outcome == pushedBack:
		if g.until.IsZero() {
			g.since = now
		}
		g.round++
		g.extend(now, max(g.backoff.Step(), v.retryAfter))
	case v.outcome == troubled:
		// No answer is no leave to go on: the next one tries.
	case p.probe:
		g.paused += now.Sub(g.since)
		g.until, g.since = time.Time{}, time.Time{}
		g.backoff = pauseBackoff()
	}
}

func (g *gate) extend(now time.Time, by time.Duration) {
	if until := now.Add(by); until.After(g.until) {
		g.until = until
	}
}

func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// state returns until when the gate is closed, and for how long it has been
// closed in all. until is zero if it is open.
func (g *gate) state() (until time.Time, total time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	total = g.paused
	if !g.since.IsZero() {
		total += g.clock.Since(g.since)
	}
	return g.until, total
}
