package tracker

import (
	"sync/atomic"
	"time"
)

// tally is what an occurrence of a running series changes: how many there were
// that nobody has taken over yet, and when the latest of all was.
//
// It is one word, so that an occurrence is counted by one atomic operation and
// without a lock. Only a tally that is open counts. Closing it tells what it has,
// and nothing is counted after that: no occurrence is lost in between.
//
// The zero value is closed, and its latest occurrence was 35 years ago.
type tally struct {
	// From the top: whether it is open, how many there were, and the time of the
	// latest in microseconds, which is as exact as an Event is.
	word atomic.Uint64
}

const (
	tallyTimeBits  = 51
	tallyCountBits = 63 - tallyTimeBits

	tallyTime uint64 = 1<<tallyTimeBits - 1
	tallyOne  uint64 = 1 << tallyTimeBits
	tallyOpen uint64 = 1 << 63

	// tallyMax is how many occurrences a tally has room for, and tallyEnough after how
	// many they should be taken over.
	tallyMax    = 1<<tallyCountBits - 1
	tallyEnough = tallyMax / 2

	// tallyEpoch is the time from the beginning of a tally's reckoning to the epoch of
	// the table. There are times before that, of series that are restored.
	tallyEpoch = 1 << (tallyTimeBits - 1) * time.Microsecond
)

// pack returns how a tally writes a time. One that is further from the epoch than 35
// years is brought nearer.
func pack(at time.Duration) uint64 {
	at = min(max(at, -tallyEpoch), tallyEpoch-time.Microsecond)
	return uint64((at + tallyEpoch) / time.Microsecond)
}

func lastOf(word uint64) time.Duration {
	return time.Duration(word&tallyTime)*time.Microsecond - tallyEpoch
}

func countOf(word uint64) int { return int(word >> tallyTimeBits & tallyMax) }

// last returns when the latest occurrence was, rounded down to microseconds.
func (t *tally) last() time.Duration { return lastOf(t.word.Load()) }

// count counts an occurrence, if the tally is open and has room, and the latest was
// less than a window ago. n is how many there are with it.
func (t *tally) count(at, window time.Duration) (n int, ok bool) {
	for {
		was := t.word.Load()
		if was < tallyOpen || countOf(was) == tallyMax || at-lastOf(was) >= window {
			return 0, false
		}
		// Two callers can come with their times in the wrong order.
		is := was&^tallyTime + tallyOne | max(was&tallyTime, pack(at))
		if t.word.CompareAndSwap(was, is) {
			return countOf(is), true
		}
	}
}

// update changes the word, and returns how many occurrences it told of before.
func (t *tally) update(change func(word uint64) uint64) (n int) {
	for {
		was := t.word.Load()
		if t.word.CompareAndSwap(was, change(was)) {
			return countOf(was)
		}
	}
}

// take takes over the occurrences that were counted.
func (t *tally) take() (n int) {
	return t.update(func(word uint64) uint64 { return word & (tallyOpen | tallyTime) })
}

// close takes them over too, and ends the counting.
func (t *tally) close() (n int) {
	return t.update(func(word uint64) uint64 { return word & tallyTime })
}

// open begins to count.
func (t *tally) open() {
	t.update(func(word uint64) uint64 { return word | tallyOpen })
}

// occurred says that there was an occurrence which is counted elsewhere.
func (t *tally) occurred(at time.Duration) {
	t.update(func(word uint64) uint64 { return word&^tallyTime | max(word&tallyTime, pack(at)) })
}
