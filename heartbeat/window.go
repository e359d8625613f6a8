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

// Rhythm remembers the longest recent gaps of a series, which are the times between two
// occurrences, in eight bytes. A period is as long as Window.Max, and what is older than
// the period before the latest one is forgotten: after one to two times Window.Max. But if
// the window was too short twice, the loop is irregular, and longMemory more periods have to
// pass. Otherwise it would seem to end again and again. The zero value remembers no gap. Not
// safe for concurrent use.
type Rhythm struct {
	current, previous uint16 // the longest windows of two periods, in Window.unit
	period            uint16 // the number of the current one, modulo 1<<16; it can be in the future
	early             uint8  // how often the window was too short, limited to 2
}

// longMemory is a day if Window.Max is 36 minutes.
const longMemory = 40

// windowUnits is about how many units Max has at most, which must fit into 16 bits: a unit is
// a second if Max is up to nine hours.
const windowUnits = 1 << 15

// unit returns a whole number of seconds, because people read windows, unless Max is short.
func (w Window) unit() time.Duration {
	unit := max(w.Max/windowUnits, 1)
	if w.Max >= time.Minute {
		unit = (unit + time.Second - 1).Truncate(time.Second)
	}
	return unit
}

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
	period, isEarly := w.periodOf(now), gap >= w.Of(*r, now-gap)
	*r = r.at(period)
	r.current = max(r.current, w.units(w.For(gap)))
	switch {
	case !isEarly:
	case r.early == 0:
		r.early = 1
	default:
		*r = Rhythm{current: max(r.current, r.previous), period: period + longMemory, early: 2}
	}
}

// Remember makes r remember a window, at most Max, as if it had seen such a gap just now: for
// example the one that an Event of an earlier process has.
func (w Window) Remember(r *Rhythm, window, now time.Duration) {
	*r = r.at(w.periodOf(now))
	r.current = max(r.current, w.units(min(max(window, 0), w.Max)))
}

// For returns the window of a series whose longest gap is the given one.
func (w Window) For(gap time.Duration) time.Duration {
	gap = min(max(gap, 0), w.Max)
	return max(w.Min, min(2*gap+gap/10, w.Max))
}

// Of returns the window at the time now of a series with rhythm r. Without occurrences,
// it becomes shorter when the longest gaps are forgotten.
func (w Window) Of(r Rhythm, now time.Duration) time.Duration {
	r = r.at(w.periodOf(now))
	window := time.Duration(max(r.current, r.previous)) * w.unit()
	return max(w.Min, min(window, w.Max))
}

// Due returns when the caller should check whether a series is over: whether it has been
// quiet for Of(r, last), where last is the time of its latest occurrence. It is not over
// at now. Due is not too late if fast occurrences follow, which are not observed.
func (w Window) Due(r Rhythm, last, now time.Duration) time.Duration {
	due := last + w.Of(r, last)
	if w.Max <= w.Min {
		return due
	}
	// The window of later occurrences can be shorter: now, and when a period begins.
	begin := now - mod(now, w.Max)
	for _, next := range [...]time.Duration{now, begin + w.Max, begin + 2*w.Max} {
		due = min(due, next+w.Of(r, next))
	}
	return due
}

func (w Window) units(d time.Duration) uint16 { return uint16((d + w.unit() - 1) / w.unit()) }

// periodOf returns the number of the period of now.
func (w Window) periodOf(now time.Duration) uint16 {
	if w.Max <= w.Min {
		return 0
	}
	return uint16((now - mod(now, w.Max)) / w.Max)
}

// at returns what r remembers in a period.
func (r Rhythm) at(period uint16) Rhythm {
	switch age := period - r.period; {
	case r == Rhythm{}:
		return Rhythm{period: period}
	case age == 0, age > math.MaxUint16-longMemory-1: // also if a goroutine comes late
		return r
	case age == 1:
		return Rhythm{previous: r.current, period: period, early: r.early}
	case age < longMemory:
		return Rhythm{period: period, early: r.early}
	default:
		return Rhythm{period: period}
	}
}

// mod returns the remainder of a division that rounds down.
func mod(d, by time.Duration) time.Duration { return (d%by + by) % by }
