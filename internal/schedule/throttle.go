package schedule

import (
	"math"
	"time"
)

// throttle limits retries that fail in a row: the first ones wait for nothing but the back-off of
// their items, and later ones for an interval that doubles. Each namespace has one. Namespaces
// share one for each class of retries.
type throttle struct {
	free     uint8         // retries that may fail in a row without an interval; constant
	first    time.Duration // the interval after these; constant
	failures uint8         // retries in a row that did not pass
	interval time.Duration // before the next one. Meaningless before free have failed
	next     time.Duration // when the next one can be made. Meaningless before free have failed
}

// at returns when the next retry can be made.
func (t *throttle) at() time.Duration {
	if t.failures < t.free {
		return never
	}
	return t.next
}

// take makes the next retry wait for twice as long as this one.
func (t *throttle) take(now, longest time.Duration, jitter func(time.Duration) time.Duration) {
	if t.failures >= t.free {
		t.interval = min(2*t.interval, longest)
		t.next = now + jitter(t.interval)
	}
}

// restart brings back the first interval.
func (t *throttle) restart(now time.Duration) {
	t.interval, t.next = RetryFirst, min(t.next, now+RetryFirst)
}

// answer takes the response to a request. One that the server denies or refuses shows that it
// handles requests.
func (t *throttle) answer(k kind, result Result, now time.Duration) {
	switch {
	case k == fresh && result == Passed:
		t.restart(now)
	case k == fresh || result == None:
	case result == Passed:
		t.failures = 0
	default:
		if t.failures = min(t.failures, math.MaxUint8-1) + 1; t.failures == t.free {
			t.interval, t.next = t.first, now+t.first
		}
		if result == Denied || result == Refused {
			t.restart(now)
		}
	}
}
