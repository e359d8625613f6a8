package schedule

import (
	"math"
	"time"
)

// throttle limits retries that fail in a row: the first ones wait for nothing but the back-off of
// their items, and later ones for an interval that doubles. Each namespace has one, and all
// share one. The zero value permits everything.
type throttle struct {
	free     uint8         // retries that may fail in a row without an interval; constant
	failures uint8         // retries in a row that did not pass
	taken    time.Duration // when the latest retry was made
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
	if t.taken = now; t.failures >= t.free {
		t.interval = min(2*t.interval, longest)
		t.next = now + jitter(t.interval)
	}
}

// restart brings back the first interval.
func (t *throttle) restart() { t.interval, t.next = retryFirst, min(t.next, t.taken+retryFirst) }

// answer takes the response to a retry. One that the server denies or refuses shows that it
// handles requests.
func (t *throttle) answer(result Result, now time.Duration) {
	switch {
	case result == Passed:
		t.failures = 0
	case result != None:
		if t.failures = min(t.failures, math.MaxUint8-1) + 1; t.failures == t.free {
			t.interval, t.next = retryFirst, now+retryFirst
		} else if result == Denied || result == Refused {
			t.restart()
		}
	}
}
