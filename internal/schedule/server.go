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
	until    time.Duration // when the next request may probe
	since    time.Duration // when it began
	total    time.Duration // of all pauses that have ended
	pusher   string        // the namespace of the latest push-back without a pause, empty if something has passed since
}

// answer takes the response to a request of a namespace. One that was sent before the pause,
// and does not probe, can only ask for more time.
func (g *pause) answer(namespace string, probe, slow bool, r Response, jitter func(time.Duration) time.Duration, now time.Duration) {
	g.probing = g.probing && (!probe || slow)
	switch {
	case r.Result == PushedBack && (g.on || r.RetryAfter > 0 || g.pusher != "" && g.pusher != namespace):
		delay, longest := r.RetryAfter, pauseMax
		if delay == 0 {
			longest = pauseGuess
		}
		if !g.on || probe {
			g.failures = min(g.failures, math.MaxUint8-1) + 1
			delay = max(delay, jitter(backoff(pauseFirst, longest, g.failures)))
		}
		if !g.on {
			g.on, g.since, g.until = true, now, now
		}
		g.until = max(g.until, now+delay)
	case r.Result == PushedBack:
		g.pusher = namespace
	case g.on && probe && r.Result != Failed && r.Result != None:
		*g = pause{total: g.total + now - g.since, pusher: g.pusher}
	}
	if r.Result == Passed {
		g.pusher = ""
	}
}

// budget limits the retries of all namespaces together.
type budget struct {
	*rate.Limiter
	least, interval time.Duration // the shortest interval, and the one of now. Zero: no limit
}

// newBudget returns a full budget.
func newBudget(least time.Duration) budget {
	return budget{rate.NewLimiter(rate.Every(least), retryBurst), least, least}
}

// at returns when the next retry can be made.
func (b *budget) at(now time.Duration) time.Duration {
	missing := 1 - b.TokensAt(time.Unix(0, int64(now)))
	if missing <= 0 {
		return now
	}
	return now + max(1, time.Duration(missing*float64(b.interval)))
}

// take reports whether a retry can be made now, and takes its place if so.
func (b *budget) take(now time.Duration) bool { return b.AllowN(time.Unix(0, int64(now)), 1) }

// answer takes the response to a request. A retry that the server cannot handle doubles the
// interval. A new item that passes makes it shorter: what has failed can be of another kind.
func (b *budget) answer(isRetry bool, result Result, now time.Duration) {
	switch {
	case isRetry && result == Passed:
		*b = newBudget(b.least)
	case isRetry && (result == Failed || result == PushedBack):
		b.interval = min(2*b.interval, retryMax)
	case isRetry && result != None:
		b.interval = b.least
	case result == Passed:
		b.interval = max(b.interval*3/4, b.least)
	}
	b.SetLimitAt(time.Unix(0, int64(now)), rate.Every(b.interval))
}
