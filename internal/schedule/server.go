package schedule

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// pause is for how long the server as a whole wants no requests. When its time is over, one
// request probes whether it can end, and the others wait for the response.
type pause struct {
	on       bool
	probing  bool          // a request in flight probes, and does not take long
	failures uint8         // push-backs that began or prolonged it
	round    uint16        // changes with each of them
	until    time.Duration // when the next request may probe
	since    time.Duration // when it began
	total    time.Duration // of all pauses that have ended
	pushed   bool          // a namespace, pusher, has been pushed back, and nothing has passed since
	pusher   string
}

// answer takes the response to a request. One that was sent before the pause began can only
// ask for more time.
func (g *pause) answer(p Pass, r Response, jitter func(time.Duration) time.Duration, now time.Duration) {
	isCurrent := p.round == g.round
	if p.probe && isCurrent && !p.slow {
		g.probing = false
	}
	g.pushed = g.pushed && r.Result != Passed
	switch r.Result {
	case PushedBack:
		isPause := g.on || r.RetryAfter > 0 || g.pushed && g.pusher != p.namespace
		g.pushed, g.pusher = true, p.namespace
		if !isPause {
			return
		}
		if !g.on {
			g.on, g.since, g.until, isCurrent = true, now, now, true
		}
		delay := r.RetryAfter
		if isCurrent {
			longest := pauseMax
			if r.RetryAfter == 0 {
				longest = pauseGuess
			}
			g.failures = min(g.failures, math.MaxUint8-1) + 1
			g.round++
			g.probing = false
			delay = max(delay, jitter(backoff(pauseFirst, longest, g.failures)))
		}
		g.until = max(g.until, now+delay)
	case Passed, Denied, Refused:
		if p.probe && g.on {
			*g = pause{round: g.round, total: g.total + now - g.since, pushed: g.pushed, pusher: g.pusher}
		}
	}
}

// budget limits the retries of all namespaces together. While nothing passes between two of
// them, its interval doubles.
type budget struct {
	*rate.Limiter
	interval  time.Duration
	passed    bool          // a request has passed since the latest retry
	unlimited bool          // see Schedule.Hurry
	at        time.Duration // when the next retry can be made
}

func fullBudget() *rate.Limiter { return rate.NewLimiter(rate.Every(retryFirst), retryBurst) }

func (b *budget) take(now time.Duration) {
	b.ReserveN(time.Unix(0, int64(now)), 1)
	if !b.passed {
		b.interval = min(2*b.interval, retryMax)
	}
	b.passed = false
	b.plan(now)
}

// pass records that a request has passed. A retry that passes fills the budget.
func (b *budget) pass(isRetry bool, now time.Duration) {
	if isRetry {
		b.Limiter = fullBudget()
	}
	b.interval, b.passed = retryFirst, true
	b.plan(now)
}

// plan sets at, which alone decides: the Limiter rounds.
func (b *budget) plan(now time.Duration) {
	t := time.Unix(0, int64(now))
	b.SetLimitAt(t, rate.Every(b.interval))
	if !b.unlimited {
		b.at = now + time.Duration(math.Ceil(max(0, 1-b.TokensAt(t))*float64(b.interval)))
	}
}
