// Package wallclock simulates changes of the wall clock in tests.
//
// # Usage
//
//	now := wallclock.Set(time.Now(), -time.Hour) // as if the clock had been set back
//
// # Guarantees
//
//   - [Set] panics if it cannot change the time as requested, for example if a new
//     version of Go changes the representation of a [time.Time].
//
// # Limitations
//
//   - [Set] supports only whole seconds, and times with a monotonic reading.
package wallclock

import (
	"fmt"
	"time"
	"unsafe"
)

// Set returns the current time after a change of the wall clock. It adds by, which must
// be whole seconds, to the wall clock of now, and keeps the monotonic reading, which now
// must have. Otherwise Set panics.
//
// Package time offers no function for this, so Set depends on its representation of a
// [time.Time] with a monotonic reading: the first word contains the seconds of the wall
// clock above 30 bits of nanoseconds.
func Set(now time.Time, by time.Duration) time.Time {
	set := now
	*(*uint64)(unsafe.Pointer(&set)) += uint64(by/time.Second) << 30
	if set.Sub(now) != 0 || set.Round(0).Sub(now.Round(0)) != by {
		panic(fmt.Sprintf("wallclock: cannot add %v to the wall clock of %v", by, now))
	}
	return set
}
