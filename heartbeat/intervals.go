package heartbeat

import (
	"errors"
	"fmt"
	"time"
)

const (
	// DefaultHeartbeat is the Heartbeat of Intervals that do not set it: half
	// of the hour for which API servers keep an Event by default, so that one
	// heartbeat may be late and the Event is still there.
	DefaultHeartbeat = 30 * time.Minute
	// DefaultFinish is the Finish of Intervals that do not set it: a little
	// more than the five minutes at which Kubernetes' exponential back-offs
	// end, so that a loop which has backed off all the way is still one series.
	DefaultFinish = 6 * time.Minute
)

// Intervals say how long a series may go without a write, and how long without
// an occurrence. The zero value stands for the defaults.
//
// Intervals are a plain value: it can be copied and used by many goroutines at
// once.
type Intervals struct {
	// Heartbeat is the time from one write of an ongoing series to the next,
	// while nothing but its count changes. If zero, DefaultHeartbeat.
	Heartbeat time.Duration

	// First is the time from the write that made it a series to the first
	// heartbeat. Each interval after that is twice the one before, until it
	// has reached Heartbeat: users see the count of a young loop early, for
	// about log2(Heartbeat/First) writes more in the life of a series. It must
	// not be longer than Heartbeat. If zero, there are no early heartbeats.
	First time.Duration

	// Finish is the time without an occurrence after which an ongoing series
	// has finished, and a singleton is forgotten. If zero, DefaultFinish.
	Finish time.Duration
}

// Validate returns an error that names each value which makes no sense: a
// negative one, and First where it is longer than Heartbeat. It returns nil
// for the zero value.
func (iv Intervals) Validate() error {
	var errs []error
	for _, field := range []struct {
		name  string
		value time.Duration
	}{
		{"Heartbeat", iv.Heartbeat},
		{"First", iv.First},
		{"Finish", iv.Finish},
	} {
		if field.value < 0 {
			errs = append(errs, fmt.Errorf("heartbeat: Intervals.%s is negative: %v", field.name, field.value))
		}
	}
	if beat := iv.WithDefaults().Heartbeat; iv.First > beat {
		errs = append(errs, fmt.Errorf("heartbeat: Intervals.First is longer than Heartbeat: %v > %v", iv.First, beat))
	}
	return errors.Join(errs...)
}

// WithDefaults returns the intervals that iv stands for: each is positive, and
// First is at most Heartbeat, and equal to it where there are no early
// heartbeats. What Validate refuses is made to fit: a negative value counts as
// zero, and a First that is too long is cut to Heartbeat.
func (iv Intervals) WithDefaults() Intervals {
	if iv.Heartbeat <= 0 {
		iv.Heartbeat = DefaultHeartbeat
	}
	if iv.First <= 0 || iv.First > iv.Heartbeat {
		iv.First = iv.Heartbeat
	}
	if iv.Finish <= 0 {
		iv.Finish = DefaultFinish
	}
	return iv
}

// untilHeartbeat is how long after its latest write a series is due for its
// next heartbeat, when it has had this many. It is the only place that decides
// so. The receiver has its defaults already.
func (iv Intervals) untilHeartbeat(heartbeats int) time.Duration {
	d := iv.First
	for ; heartbeats > 0; heartbeats-- {
		// The difference, because 2*d may be more than a Duration holds.
		if d >= iv.Heartbeat-d {
			return iv.Heartbeat
		}
		d *= 2
	}
	return d
}
