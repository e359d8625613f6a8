package heartbeat

import (
	"math"
	"time"
)

// Window says for how long a series may be quiet before it is over: 2.1 times the
// longest recent time between two of its occurrences, but at least Min and at most Max.
// So a loop that backs off stays one series, and one that is fast ends soon.
//
// A loop that backs off at most doubles the time between its occurrences. Jitter and work
// may add a twentieth to that.
//
// A Window is a plain value that many goroutines can use at once. If Max is not above
// Min, all series have the window Min. All times are distances from an epoch that the
// caller chooses; they can be negative.
type Window struct{ Min, Max time.Duration }

// Rhythm remembers the longest recent gap of a series, which is the time between two
// occurrences, as the window that follows from it. The zero value remembers none. Not safe for
// concurrent use.
//
// It forgets the gap after twice Window.Max. In the last half of Window.Max before that, a
// shorter gap from Window.Slow on replaces it, so a loop that becomes faster is not over then.
// One that is longer than this half has the window Window.Max, and so replaces it at any time.
//
// If the window was too short twice, the loop is irregular, and would seem to end again and
// again: then Rhythm remembers the gap longMemory times Window.Max. The first gap above
// Window.Min counts as the first time.
type Rhythm struct {
	window int32 // in seconds
	at     int32 // when its gap ended, in seconds
	early  uint8 // how often the window was too short, at most 2
}

// longMemory times Window.Max is a day if that is 36 minutes.
const longMemory = 40

// Slow returns the time between two occurrences from which [Window.Observe] has to be
// called. Shorter ones change no window.
func (w Window) Slow() time.Duration {
	if w.Max <= w.Min {
		return math.MaxInt64
	}
	return w.Min / 21 * 10
}

// Observe records that an occurrence at the time now comes gap after the one before.
func (w Window) Observe(r *Rhythm, gap, now time.Duration) {
	if gap < w.Slow() {
		return
	}
	if now >= w.until(*r)+longMemory*w.Max { // it has been regular for as long
		*r = Rhythm{}
	}
	if gap >= w.Of(*r, now-gap) {
		r.early = min(r.early+1, 2)
	}
	w.Remember(r, w.For(gap), now)
}

// Remember makes r remember a window, at most Max, as if it had observed a gap with that window
// at the time now: for example the window that an Event of an earlier process has.
func (w Window) Remember(r *Rhythm, window, now time.Duration) {
	rounded := roundUp(min(window, w.Max))
	if rounded >= r.window || now >= w.until(*r)-w.Max/2 {
		r.window, r.at = rounded, roundUp(now)
	}
}

// until returns when r forgets its window.
func (w Window) until(r Rhythm) time.Duration {
	if r.early > 1 {
		return seconds(r.at) + longMemory*w.Max
	}
	return seconds(r.at) + 2*w.Max
}

// For returns the window of a series whose longest gap is the given one. It is a whole number
// of seconds, because people read windows, unless it is Min or Max.
func (w Window) For(gap time.Duration) time.Duration {
	gap = min(max(gap, 0), w.Max)
	return max(w.Min, min(seconds(roundUp(2*gap+gap/10)), w.Max))
}

// Of returns the window at the time now of a series with rhythm r. Without occurrences,
// it becomes shorter when the longest gap is forgotten.
func (w Window) Of(r Rhythm, now time.Duration) time.Duration {
	if now >= w.until(r) {
		return w.Min
	}
	return max(w.Min, min(seconds(r.window), w.Max))
}

// Due returns when the caller should check whether a series is over: whether it has been
// quiet for Of(r, last), where last is the time of its latest occurrence. At the time now it
// must not be over. Due is not too late if fast occurrences follow, which are not observed.
func (w Window) Due(r Rhythm, last, now time.Duration) time.Duration {
	return min(last+w.Of(r, last), max(now, w.until(r))+w.Min)
}

// roundUp returns d in seconds, which fit for 68 years.
func roundUp(d time.Duration) int32 { return int32(math.Ceil(d.Seconds())) }

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
