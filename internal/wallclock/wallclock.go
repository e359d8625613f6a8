// Package wallclock simulates changes of the wall clock in tests.
//
// # Usage
//
//	now := wallclock.Set(time.Now(), -time.Hour) // as if the clock had been set back
//
// # Guarantees
//
//   - [Set] and [At] panic if they cannot change the time as requested, for example if a new
//     version of Go changes the representation of a [time.Time].
//
// # Limitations
//
//   - The times must have a monotonic reading.
package wallclock

import (
	"fmt"
	"time"
	"unsafe"
)

// Set returns the current time after a change of the wall clock. It adds by to the wall
// clock of now, and keeps the monotonic reading, which now must have.
func Set(now time.Time, by time.Duration) time.Time { return At(now, now.Round(0).Add(by)) }

// At returns now as if the wall clock said wall. It keeps the monotonic reading, which now
// must have. Otherwise it panics.
//
// Package time offers no function for this, so At depends on its representation of a
// [time.Time] with a monotonic reading: the first word contains the seconds of the wall
// clock above 30 bits of nanoseconds.
func At(now, wall time.Time) time.Time {
	set := now
	*(*uint64)(unsafe.Pointer(&set)) += uint64(wall.Unix()-now.Unix())<<30 + uint64(wall.Nanosecond()-now.Nanosecond())
	if set.Sub(now) != 0 || !set.Round(0).Equal(wall) {
		panic(fmt.Sprintf("wallclock: cannot set the wall clock of %v to %v", now, wall))
	}
	return set
}
