package heartbeat

import (
	"cmp"
	"time"
)

// Intervals are the times between the heartbeats of an ongoing series. They are a plain value
// that many goroutines can use at once. All fields that are not zero must be positive.
type Intervals struct {
	// Heartbeat is the time from one write of an ongoing series to the next. It must not be zero.
	Heartbeat time.Duration

	// First is the first interval, and the second. Each following one is twice the previous one,
	// up to Heartbeat: the count on the server is never older than half of the time since the
	// first write, for about log2(Heartbeat/First) additional writes. If zero, Heartbeat.
	First time.Duration
}

// After returns the interval that follows this many heartbeats.
func (iv Intervals) After(heartbeats uint8) time.Duration {
	d := min(cmp.Or(iv.First, iv.Heartbeat), iv.Heartbeat)
	for ; heartbeats > 1 && d < iv.Heartbeat; heartbeats-- {
		d += min(d, iv.Heartbeat-d)
	}
	return d
}

// Jitter returns when a heartbeat is due that would be due at latest, so that series which begin
// together do not send their heartbeats together: at a phase of the interval that follows from
// hash. The result is at most Heartbeat before latest and never after it. Consecutive heartbeats
// of one series keep the phase, so jitter shortens one interval in the life of a series.
func (iv Intervals) Jitter(latest time.Duration, hash uint64) time.Duration {
	phase := time.Duration(hash % uint64(iv.Heartbeat))
	early := (latest - phase) % iv.Heartbeat
	if early < 0 {
		early += iv.Heartbeat
	}
	return latest - early
}
