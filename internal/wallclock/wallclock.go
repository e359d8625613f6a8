// Package wallclock makes times as they are when a wall clock has been set, for
// tests.
package wallclock

import (
	"fmt"
	"time"
	"unsafe"
)

// Set returns now as it would be if the wall clock had been set by so much, which
// must be whole seconds: the monotonic reading, which now must have, is as before.
// It panics where it cannot do that.
//
// Package time has no way to make such a time, so this reaches into it: where
// there is a monotonic reading, the wall clock's seconds are in the first word,
// above 30 bits of nanoseconds.
func Set(now time.Time, by time.Duration) time.Time {
	set := now
	*(*uint64)(unsafe.Pointer(&set)) += uint64(by/time.Second) << 30
	if set.Sub(now) != 0 || set.Round(0).Sub(now.Round(0)) != by {
		panic(fmt.Sprintf("wallclock: cannot set %v by %v", now, by))
	}
	return set
}
