// Package heartbeat decides when an ongoing event series is written ([Interval]), and when a
// quiet one is over ([Window] and [Rhythm]). It reads no clock, does no I/O, and knows nothing of
// events.
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

// Rhythm remembers the longest recent gaps of a series as the windows that follow from them. A
// gap is the time between two occurrences. The zero value remembers none. Not safe for
// concurrent use.
//
// It remembers a gap for at least a period, which is Window.Max, and for at most two. So it has two
// maxima: that of a period and of the one before. A gap that is longer than both begins anew.
//
// If the window was too short twice, the loop is irregular, and would seem to end again and
// again: then two periods are longMemory times Window.Max. The first gap above Window.Min counts
// as the first time.
type Rhythm struct {
	window int32  // of the longest gap of a period, in seconds
	at     int32  // when this period began, in seconds
	next   uint16 // of the longest gap of the period after it; if that does not fit, it is as long as window
	early  uint8  // how often the window was too short, at most 2
}

func (r Rhythm) after() int32 {
	if r.next == math.MaxUint16 {
		return r.window
	}
	return int32(r.next)
}

// longMemory times Window.Max is a day if that is 36 minutes.
const longMemory = 40

// slow returns the shortest time between two occurrences that changes a window.
func (w Window) slow() time.Duration { return w.Min / 21 * 10 }

// Observe records that an occurrence at the time now comes gap after the one before. A gap that is
// shorter than Min/2.1 changes nothing.
func (w Window) Observe(r *Rhythm, gap, now time.Duration) {
	if gap < w.slow() {
		return
	}
	if now >= w.until(*r, now)+longMemory*w.Max { // it has been regular for as long
		*r = Rhythm{}
	}
	if gap >= w.Of(*r, now-gap) {
		r.early = min(r.early+1, 2)
	}
	w.Remember(r, w.lasting(gap), now)
}

// Remember makes r remember a window, at most Max, as if it had observed a gap with that window
// at the time now: for example the window that an Event of an earlier process has.
func (w Window) Remember(r *Rhythm, window, now time.Duration) {
	rounded, period := roundUp(min(window, w.Max)), w.period(*r)
	for ; now >= seconds(r.at)+2*period && r.window > 0; r.at += roundUp(period) {
		r.window, r.next = r.after(), 0
	}
	switch {
	case rounded >= r.window:
		r.window, r.next, r.at = rounded, 0, roundUp(now)
	case now >= seconds(r.at)+period:
		r.next = max(r.next, uint16(min(max(rounded, 0), math.MaxUint16)))
	}
}

func (w Window) period(r Rhythm) time.Duration {
	if r.early > 1 {
		return longMemory / 2 * w.Max
	}
	return w.Max
}

// until returns when the window of r changes next after now. If it does not, the time has passed.
func (w Window) until(r Rhythm, now time.Duration) time.Duration {
	period := w.period(r)
	if end := seconds(r.at) + 2*period; now < end || r.next == 0 {
		return end
	}
	return seconds(r.at) + 3*period
}

// lasting returns the window of a series whose longest gap is the given one. It is a whole number
// of seconds, because people read windows, unless it is Min or Max.
func (w Window) lasting(gap time.Duration) time.Duration {
	gap = min(max(gap, 0), w.Max)
	return max(w.Min, min(seconds(roundUp(2*gap+gap/10)), w.Max))
}

// Of returns the window at the time now of a series with rhythm r. Without occurrences,
// it becomes shorter when the longest gap is forgotten.
func (w Window) Of(r Rhythm, now time.Duration) time.Duration {
	longest := r.after()
	switch since, period := now-seconds(r.at), w.period(r); {
	case since < 2*period:
		longest = r.window
	case since >= 3*period:
		longest = 0
	}
	return max(w.Min, min(seconds(longest), w.Max))
}

// Due returns when the caller should check whether a series is over: whether it has been
// quiet for Of(r, last), where last is the time of its latest occurrence. At the time now it
// must not be over. Due is not too late if fast occurrences follow, which are not observed.
func (w Window) Due(r Rhythm, last, now time.Duration) time.Duration {
	changes := max(now, w.until(r, now))
	return min(last+w.Of(r, last), now+w.Of(r, now), changes+w.Of(r, changes))
}

// roundUp returns d in seconds, which fit for 68 years.
func roundUp(d time.Duration) int32 { return int32(math.Ceil(d.Seconds())) }

func seconds(n int32) time.Duration { return time.Duration(n) * time.Second }
