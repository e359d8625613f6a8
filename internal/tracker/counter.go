package tracker

import (
	"sync/atomic"
	"time"
)

// counter is what an occurrence of an ongoing series changes: how many there were
// since the last take, and when the latest was.
//
// It is one word, so an occurrence takes one atomic operation and no lock: a lock costs
// more, see the package documentation. Only an open counter counts. To close it returns
// what it has counted, and it counts nothing afterwards, so no occurrence is lost in
// between.
//
// The zero value is closed, and its latest occurrence was 35 years ago.
type counter struct {
	// From the top: one bit for open, the number of occurrences, and the time of the
	// latest in microseconds, which is the precision of an Event.
	word atomic.Uint64
}

const (
	counterTimeBits  = 51
	counterCountBits = 63 - counterTimeBits

	counterTime uint64 = 1<<counterTimeBits - 1
	counterOne  uint64 = 1 << counterTimeBits
	counterOpen uint64 = 1 << 63

	// counterMax is how many occurrences a counter can hold. The caller takes them
	// when it has reached counterHalf.
	counterMax  = 1<<counterCountBits - 1
	counterHalf = counterMax / 2

	// counterEpoch is the time from the zero of a counter to the epoch of the
	// tracker. Restored series have times before that.
	counterEpoch = 1 << (counterTimeBits - 1) * time.Microsecond
)

// pack returns a time as a counter stores it. Times more than 35 years from the
// epoch are stored as 35 years.
func pack(at time.Duration) uint64 {
	at = min(max(at, -counterEpoch), counterEpoch-time.Microsecond)
	return uint64((at + counterEpoch) / time.Microsecond)
}

func lastOf(word uint64) time.Duration {
	return time.Duration(word&counterTime)*time.Microsecond - counterEpoch
}

func countOf(word uint64) int { return int(word >> counterTimeBits & counterMax) }

// last returns when the latest occurrence was, rounded down to microseconds.
func (c *counter) last() time.Duration { return lastOf(c.word.Load()) }

// count counts an occurrence if the counter is open and has room, and if the
// latest occurrence is less than window ago. n is the number that it holds then.
func (c *counter) count(at, window time.Duration) (n int, ok bool) {
	for {
		old := c.word.Load()
		if old < counterOpen || countOf(old) == counterMax || at-lastOf(old) >= window {
			return 0, false
		}
		// Concurrent callers can arrive with their times out of order.
		updated := old&^counterTime + counterOne | max(old&counterTime, pack(at))
		if c.word.CompareAndSwap(old, updated) {
			return countOf(updated), true
		}
	}
}

// update changes the word and returns the number of occurrences that it held.
func (c *counter) update(change func(word uint64) uint64) (n int) {
	for {
		old := c.word.Load()
		if c.word.CompareAndSwap(old, change(old)) {
			return countOf(old)
		}
	}
}

// take returns the occurrences counted so far, and starts again at zero.
func (c *counter) take() (n int) {
	return c.update(func(word uint64) uint64 { return word & (counterOpen | counterTime) })
}

// close is like take, and closes the counter.
func (c *counter) close() (n int) {
	return c.update(func(word uint64) uint64 { return word & counterTime })
}

func (c *counter) open() {
	c.update(func(word uint64) uint64 { return word | counterOpen })
}

// occurred records the time of an occurrence that is counted elsewhere.
func (c *counter) occurred(at time.Duration) {
	c.update(func(word uint64) uint64 { return word&^counterTime | max(word&counterTime, pack(at)) })
}
