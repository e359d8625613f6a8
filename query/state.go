package query

import (
	"cmp"
	"math"
	"time"

	"github.com/eventseries/eventseries/series"
)

// State says whether a series goes on, as far as its Event tells. The values are those
// of [series.State], and Quiet.
type State string

const (
	// Ongoing: the event recurs.
	Ongoing State = "Ongoing"
	// Unknown: nobody knows whether the event still recurs. Its recorder missed the time of
	// its next update, or said so, or other events can have kept it from an update. Or the
	// time of the latest occurrence is missing or false.
	Unknown State = "Unknown"
	// Quiet: the recorder would have written another occurrence since [series.Series.Last].
	// The loop or its process has probably ended.
	Quiet State = "Quiet"
	// Finished: the recorder says that the event does not recur. If it occurs again, the
	// count goes up, and the series can be Ongoing again.
	Finished State = "Finished"
	// Singleton: the event has occurred once.
	Singleton State = "Singleton"
)

// States returns all states in the order of [ByState].
func States() []State { return []State{Ongoing, Unknown, Quiet, Finished, Singleton} }

// setState sets the state at i.At, and the times at which it changes. said is the state that the
// Event says or, if it says none, the one that follows from its count. heartbeat is that of the
// recorder if the Event does not say it.
func (i *Item) setState(said series.State, heartbeat time.Duration) {
	i.Series.State, i.State = said, State(said.String())
	isLegacy := i.Recorder == ToolsRecord
	if said == series.Ongoing {
		i.Heartbeat = cmp.Or(i.Heartbeat, heartbeat)
		if isLegacy {
			i.Window = windowOf(i.Count, i.Last.Sub(i.First))
		}
		if isLegacy && i.Controller() == "kubelet" {
			i.Window = min(i.Window, kubeletWindow)
		}
	}
	switch {
	case said.Closed():
		return
	case i.ahead() || said == series.Ongoing && i.Last.IsZero():
		i.State = Unknown
		return
	case said != series.Ongoing:
		return
	}
	next := i.Last.Add(i.Heartbeat)
	i.StaleAt = next.Add(i.QuietWindow())
	whenStale := Quiet
	if !isLegacy {
		i.NextWrite, whenStale = next, Unknown
		i.StaleAt = i.StaleAt.Add(series.ClockSkew)
	}
	if i.At.After(i.StaleAt) {
		i.State = whenStale
	}
}

// ahead reports whether the latest occurrence is later than any clock can be ahead.
func (i *Item) ahead() bool { return i.At.Before(i.validAt()) }

// validAt returns from when the latest occurrence is not later than a clock can be ahead.
func (i *Item) validAt() time.Time { return i.Last.Add(-series.ClockSkew) }

// kubeletWindow is for how long a series of the kubelet can be quiet: its back-off is at most 5
// minutes, and it forgets the back-off of a container that has run for 10 minutes. With
// legacyHeartbeat, that is more than both together.
const kubeletWindow = 10*time.Minute + 30*time.Second

// Limits of what [windowOf] assumes of a loop.
const (
	maxWindow = 36 * time.Minute
	// maxDoublings is how often a back-off doubles before it is constant: from a millisecond
	// to 1,000 seconds.
	maxDoublings = 20
)

// windowOf returns for how long a loop whose Event has only a count and two times can be
// quiet: 2.1 times the longest gap between two occurrences that these permit, at least
// [series.FinishAfter] and at most 36 minutes.
//
// The longest gap is that of a back-off that doubles with each occurrence: about half of
// the time. If the loop has occurred more often than it can have doubled, the later gaps are
// as long as the longest.
func windowOf(count int32, lasted time.Duration) time.Duration {
	gaps := count - 1
	if gaps < 1 || lasted <= 0 {
		return series.FinishAfter
	}
	share := 1 / float64(gaps-maxDoublings+1)
	if gaps <= maxDoublings {
		share = 1 / (2 - math.Exp2(float64(1-gaps))) // 1, 2/3, 4/7, 8/15 …
	}
	window := time.Duration(min(2.1*share*float64(lasted), float64(maxWindow)))
	return max(window, series.FinishAfter).Round(time.Second)
}
