package heartbeat

import (
	"cmp"
	"time"
)

// Interval returns the time from one write of an ongoing series to the next, after this many
// heartbeats. The first one is first, and so is the second. Each following one is twice the previous
// one, up to longest: after the first one, the count on the server is never older than half of the time
// since the first write, for about log2(longest/first) additional writes. If first is zero, all are longest.
func Interval(first, longest time.Duration, heartbeats uint8) time.Duration {
	d := min(cmp.Or(first, longest), longest)
	for ; heartbeats > 1 && d < longest; heartbeats-- {
		d += min(d, longest-d)
	}
	return d
}
