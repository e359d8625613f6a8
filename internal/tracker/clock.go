package tracker

import "time"

// minJump is the least difference that is no correction of a clock.
const minJump = time.Minute

// jump returns by how much the wall clock has run ahead of the monotonic one since the latest
// catchUp.
func (t *table) jump(now time.Time) time.Duration {
	return now.Round(0).Sub(t.epoch.Round(0)) - t.offset(now) - t.ahead
}

// catchUp makes the Events of ongoing series older if the wall clock has jumped ahead, so they need a
// heartbeat. While a machine is suspended, the monotonic clock stands still, and Events expire. If a
// clock was behind, their times are those of long ago. Windows and delays follow the monotonic clock.
func (t *Tracker) catchUp(now time.Time) {
	t.mu.Lock()
	jump := t.jump(now)
	if jump < 0 || jump >= minJump {
		t.ahead += jump
	}
	t.mu.Unlock()
	if jump < minJump {
		return
	}
	t.inParts(func(e *Entry) {
		if e.isOngoing() {
			t.take(e, now, func(*step) { e.age(min(jump, longAgo)) })
		}
	})
}

// age says that what is stored is older than it seems.
func (e *Entry) age(by time.Duration) {
	e.stored.at -= by
	e.beatAt -= by
	if e.attempts != nil {
		e.attempts.first.at -= by
		e.attempts.latest.at -= by
	}
}
