package heartbeat

import (
	"fmt"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// Due says what a series is due for. The zero value is None.
type Due uint8

const (
	// None: nothing is due.
	None Due = iota
	// Heartbeat: the count and time of an ongoing series are to be written.
	Heartbeat
	// Finish: an ongoing series has been quiet for so long that it is over. It
	// is to be closed, and written a last time.
	Finish
	// Forget: a singleton has been alone for so long that what follows is no
	// longer part of it. Time alone decides that. A singleton that has still
	// to reach the server must be kept until it has.
	Forget
)

var dueNames = [...]string{"None", "Heartbeat", "Finish", "Forget"}

// String returns the name of d.
func (d Due) String() string {
	if int(d) < len(dueNames) {
		return dueNames[d]
	}
	return fmt.Sprintf("Due(%d)", uint8(d))
}

// Check says what is due at now for a series with status s. If nothing is, it
// also says when to look again; the zero time stands for never. With what is due
// the time is zero as well, since it depends on what s becomes by that.
//
//   - A singleton is due for Forget when its last occurrence is Finish ago.
//   - An ongoing series is due for Finish when its last occurrence is Finish
//     ago, and otherwise for Heartbeat when its last write is an interval ago, or
//     where that is the full interval, Status.Lead less.
//     A heartbeat needs an earlier write, and is not due while another write
//     is waiting; after that write the series is to be checked anew.
//   - A series that is closed is never due for anything.
//
// The time to look again is after now, and at most one interval away. It is a
// promise only in one direction: before that time nothing becomes due by time
// passing. When it has come, the series may have had another occurrence, and
// Check may well say None and a later time.
//
// Elapsed time is measured by the monotonic clock where the times carry its
// reading, and the returned time carries it where now does. A last occurrence
// or write that lies after now, as it may where there is only a wall clock and
// that was set back, counts as made now.
//
// Check has no side effects and can be called concurrently. It never panics,
// even for intervals that Validate refuses; those it takes as WithDefaults
// does.
func (iv Intervals) Check(s tracker.Status, now time.Time) (Due, time.Time) {
	iv = iv.WithDefaults()
	switch s.State {
	case series.Singleton:
		left := iv.Finish - elapsed(s.Last, now)
		if left <= 0 {
			return Forget, time.Time{}
		}
		return None, now.Add(left)

	case series.Ongoing:
		// First, because a process that was suspended can find both due: a
		// heartbeat would say that a loop goes on which has ended.
		left := iv.Finish - elapsed(s.Last, now)
		if left <= 0 {
			return Finish, time.Time{}
		}
		if !s.Waiting && !s.Written.IsZero() {
			interval := iv.untilHeartbeat(s.Heartbeats)
			if interval == iv.Heartbeat {
				interval -= min(max(s.Lead, 0), interval) // early ones are few, and people wait for them
			}
			beat := interval - elapsed(s.Written, now)
			if beat <= 0 {
				return Heartbeat, time.Time{}
			}
			left = min(left, beat)
		}
		// Counted from now and not from s.Last, which lacks a monotonic reading
		// if it was read from the server: the queue needs one.
		return None, now.Add(left)

	default:
		return None, time.Time{}
	}
}

// elapsed is the time from since to now, and never negative.
func elapsed(since, now time.Time) time.Duration {
	return max(0, now.Sub(since))
}
