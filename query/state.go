package query

import (
	"cmp"
	"math"
	"time"

	"github.com/eventseries/eventseries/series"
)

// States returns all states in the order of [ByState].
func States() []series.State {
	return []series.State{series.Ongoing, series.Unknown, series.Quiet, series.Finished, series.Singleton}
}

// setState sets the state at i.At, and the times at which it changes. said is the state that the
// Event says or, if it says none, the one that follows from its count. heartbeat is that of the
// recorder if the Event does not say it.
func (i *Item) setState(said series.State, heartbeat time.Duration) {
	i.Series.State, i.Prompt = said, i.Recorder == ToolsRecord
	if said == series.Ongoing {
		i.Heartbeat = cmp.Or(i.Heartbeat, heartbeat)
		if i.Prompt {
			i.Window = windowOf(i.Count, i.Last.Sub(i.First))
		}
		if i.Prompt && i.Controller() == "kubelet" {
			i.Window = min(i.Window, kubeletWindow)
		}
	}
	i.State = i.StateAt(i.At)
	if said != series.Ongoing || i.ahead() || i.Last.IsZero() {
		return
	}
	i.StaleAt = i.Series.StaleAt()
	if !i.Prompt {
		i.NextWrite = i.Last.Add(i.Heartbeat)
	}
	if i.Slow() && i.State == series.Ongoing {
		i.State = series.Unknown
	}
}

// Slow reports whether an event of the legacy recorder recurs less often than every 36 minutes
// on average. It is Unknown until [Item.StaleAt]: nobody knows whether it will recur.
func (i *Item) Slow() bool {
	return i.Prompt && i.Count > 1 && i.Last.Sub(i.First)/time.Duration(i.Count-1) > maxWindow
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
