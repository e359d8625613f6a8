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
	again time.Time // the latest time for which the clock was stepped: see set
}

// past is the channel of a timer that is due.
var past = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// set returns a channel from which the caller can receive at the given time, or now if
// that has passed, or if the clock was stepped during the call. Then the caller sets it again, once for
// each time: to a clock that runs fast, each call is a step. The channel is nil if at is zero. The next
// call invalidates it.
func (t *timer) set(at time.Time) <-chan time.Time {
	t.stop()
	if at.IsZero() {
		return nil
	}
	began, before := time.Now(), t.clock.Now()
	delay := at.Sub(before)
	t.timer = t.clock.NewTimer(delay)
	moved := t.clock.Now().Sub(before) // by more than the time that has passed if it was stepped
	wasStepped := moved < 0 || moved > time.Since(began)
	if moved >= delay || wasStepped && !at.Equal(t.again) {
		t.again = at
		return past
	}
	return t.timer.C()
}

func (t *timer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
