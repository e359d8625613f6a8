package schedule

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// Delays double from the first to the longest with each failure in a row.
const (
	pauseFirst = 5 * time.Second // of the server
	pauseMax   = 5 * time.Minute
	pauseGuess = 40 * time.Second // the longest pause that the server has not asked for

	retryFirst   = time.Second // of an item, and between retries
	retryMax     = 2 * time.Minute
	retryBurst   = 10
	retryHurried = 100 * time.Millisecond // the longest delay of an item in a shutdown

	deniedMax   = 5 * time.Minute  // of an item that the server denies
	deniedLong  = 40 * time.Minute // after deniedOften denials in a row, which take an hour and a half
	deniedOften = 24

	refusedMax = 30 // times Response.Least
)

// Several is the number of requests in a row that must fail in a namespace before the
// namespace is to blame and not the items.
const Several = 16

const (
	never  = math.MaxInt64
	always = math.MinInt64
)

// backoff returns the delay after this many failures in a row.
func backoff(first, longest time.Duration, failures uint8) time.Duration {
	for ; failures > 1 && first < longest; failures-- {
		first *= 2
	}
	return min(first, longest)
}

// pause is what the server as a whole wants. It begins with a push-back. When its time is
// over, one request probes whether it can end; the others wait for the response.
type pause struct {
	on       bool
	probing  bool          // a request in flight probes, and does not take long
	failures uint8         // push-backs that began or prolonged it
	round    uint16        // changes with each of them
	until    time.Duration // when the next request may probe
	since    time.Duration // when it began
	total    time.Duration // of all pauses that have ended
}

func (p *pause) isOver(now time.Duration) bool { return !p.on || !p.probing && now >= p.until }

func (p *pause) end(now time.Duration) {
	if p.on {
		p.total += now - p.since
		*p = pause{round: p.round, total: p.total}
	}
}

// budget limits the retries of all namespaces together. While nothing passes between two of
// them, its interval doubles.
type budget struct {
	tokens    *rate.Limiter
	interval  time.Duration
	passed    bool          // a request has passed since the latest retry
	at        time.Duration // when the next retry can be made
	unlimited bool          // at stays as it is
}

func newBudget() budget {
	return budget{tokens: rate.NewLimiter(rate.Every(retryFirst), retryBurst), interval: retryFirst, at: always}
}

// wall returns what package rate wants instead of a distance from an epoch.
func wall(now time.Duration) time.Time { return time.Unix(0, int64(now)) }

// take takes the token of a retry. If it does not exist, because of a rounding error, the
// next one comes later.
func (b *budget) take(now time.Duration) {
	b.tokens.ReserveN(wall(now), 1)
	interval := b.interval
	if !b.passed {
		interval = min(2*interval, retryMax)
	}
	b.passed = false
	b.set(interval, now)
}

// pass records that a request has passed. A retry that passes fills the budget.
func (b *budget) pass(isRetry bool, now time.Duration) {
	b.passed = true
	if isRetry {
		b.tokens = rate.NewLimiter(rate.Every(retryFirst), retryBurst)
	}
	if isRetry || b.interval > retryFirst {
		b.set(retryFirst, now)
	}
}

func (b *budget) set(interval, now time.Duration) {
	b.interval = interval
	b.tokens.SetLimitAt(wall(now), rate.Every(interval))
	if !b.unlimited {
		missing := max(0, 1-b.tokens.TokensAt(wall(now)))
		b.at = now + time.Duration(math.Ceil(missing*float64(interval)))
	}
}
