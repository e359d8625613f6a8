package events

import (
	"time"

	"k8s.io/utils/clock"
)

// timer fires at a time of a clock, which can be a fake one. A timer of a
// k8s.io/utils/clock/testing.FakeClock differs from one of Go:
//
//   - If it is due when it is set, it does not fire before the next step.
//   - If its tick is not received, the tick after that blocks the clock.
//   - It is set to a delay. If the clock is stepped between the calculation of the delay
//     and the call, it fires late by the step.
//
// The zero value needs a clock. One goroutine at a time can use a timer.
type timer struct {
	clock clock.WithTicker
	timer clock.Timer
}

// past is the channel of a timer that is due.
var past = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// setTries bounds how often set repeats its calculation, for clocks that run fast.
const setTries = 10

// set returns a channel from which the caller can receive at the given time, or now if
// that has passed. The channel is nil if at is zero. The next call invalidates it.
//
// The time is exact if the clock stands still between its steps. On a clock that runs, it
// is late by at most the duration of the call.
func (t *timer) set(at time.Time) <-chan time.Time {
	if at.IsZero() {
		t.stop()
		return nil
	}
	for try := 1; ; try++ {
		began, before := time.Now(), t.clock.Now()
		t.reset(at.Sub(before))
		now := t.clock.Now()
		moved := now.Sub(before) // by more than the time that has passed if it was stepped
		switch {
		case !at.After(now):
			t.stop()
			return past
		case 0 <= moved && moved <= time.Since(began), try == setTries:
			return t.timer.C()
		}
	}
}

// reset sets the timer to a delay. It replaces a timer that has fired, because the channel
// of that one can contain a tick.
func (t *timer) reset(delay time.Duration) {
	if t.stop() {
		t.timer.Reset(delay)
	} else {
		t.timer = t.clock.NewTimer(delay)
	}
}

// stop stops the timer, and reports whether it can be reset.
func (t *timer) stop() bool { return t.timer != nil && t.timer.Stop() }
