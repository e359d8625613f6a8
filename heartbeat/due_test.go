package heartbeat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

func TestDueString(t *testing.T) {
	for d, want := range map[Due]string{
		None:      "None",
		Heartbeat: "Heartbeat",
		Finish:    "Finish",
		Forget:    "Forget",
		4:         "Due(4)",
		255:       "Due(255)",
	} {
		assert.Equal(t, want, d.String())
	}
}

// TestCheck has times as distances to start. A missing time is nil.
func TestCheck(t *testing.T) {
	const (
		m         = time.Minute
		singleton = series.Singleton
		ongoing   = series.Ongoing
	)
	at := func(d time.Duration) *time.Duration { return &d }
	early := Intervals{First: m}
	short := Intervals{Heartbeat: 10 * time.Second, Finish: 4 * time.Second}
	for _, tt := range []struct {
		name          string
		iv            Intervals
		state         series.State
		last, written *time.Duration
		beats         int
		waiting       bool
		lead          time.Duration
		now           time.Duration

		want Due
		next *time.Duration
	}{
		{name: "new", state: singleton, last: at(0), now: 0, next: at(6 * m)},
		{name: "one ns before", state: singleton, last: at(0), now: 6*m - 1, next: at(6 * m)},
		{name: "at", state: singleton, last: at(0), now: 6 * m, want: Forget},
		{name: "one ns after", state: singleton, last: at(0), now: 6*m + 1, want: Forget},
		{name: "written late", state: singleton, last: at(0), written: at(5 * m), now: 6 * m, want: Forget},
		{name: "waiting", state: singleton, last: at(0), waiting: true, now: 6 * m, want: Forget},
		{name: "no heartbeat", iv: early, state: singleton, last: at(0), written: at(0), now: 2 * m, next: at(6 * m)},
		{name: "short", iv: short, state: singleton, last: at(0), now: 4*time.Second - 1, next: at(4 * time.Second)},
		{name: "short, at", iv: short, state: singleton, last: at(0), now: 4 * time.Second, want: Forget},
		{name: "no times at all", state: singleton, want: Forget},
		{name: "clock set back", state: singleton, last: at(60 * m), now: 0, next: at(6 * m)},

		{name: "finish, one ns before", state: ongoing, last: at(0), written: at(0), now: 6*m - 1, next: at(6 * m)},
		{name: "finish, at", state: ongoing, last: at(0), written: at(0), now: 6 * m, want: Finish},
		{name: "finish, one ns after", state: ongoing, last: at(0), written: at(0), now: 6*m + 1, want: Finish},
		{name: "finish, much later", state: ongoing, last: at(0), written: at(0), now: 1e6 * m, want: Finish},
		{name: "finish, waiting", state: ongoing, last: at(0), written: at(0), waiting: true, now: 6 * m, want: Finish},
		{name: "finish, never written", state: ongoing, last: at(0), now: 6 * m, want: Finish},
		{name: "finish, written just now", state: ongoing, last: at(0), written: at(6 * m), now: 6 * m, want: Finish},
		{name: "finish wins", state: ongoing, last: at(24 * m), written: at(0), now: 30 * m, want: Finish},
		{name: "finish wins after a pause", state: ongoing, last: at(25 * m), written: at(0), now: 90 * m, want: Finish},

		{name: "heartbeat, one ns before", state: ongoing, last: at(30*m - 1), written: at(0), now: 30*m - 1, next: at(30 * m)},
		{name: "heartbeat, at", state: ongoing, last: at(30 * m), written: at(0), now: 30 * m, want: Heartbeat},
		{name: "heartbeat, one ns after", state: ongoing, last: at(30 * m), written: at(0), now: 30*m + 1, want: Heartbeat},
		{name: "heartbeat, finish one ns off", state: ongoing, last: at(24*m + 1), written: at(0), now: 30 * m, want: Heartbeat},
		{name: "heartbeat, waiting", state: ongoing, last: at(30 * m), written: at(0), waiting: true, now: 30 * m, next: at(36 * m)},
		{name: "heartbeat, never written", state: ongoing, last: at(30 * m), now: 30 * m, next: at(36 * m)},

		{name: "lead, one ns before", state: ongoing, last: at(20 * m), written: at(0), lead: 10 * m, now: 20*m - 1, next: at(20 * m)},
		{name: "lead, at", state: ongoing, last: at(20 * m), written: at(0), lead: 10 * m, now: 20 * m, want: Heartbeat},
		{name: "lead is all", state: ongoing, last: at(0), written: at(0), lead: 30 * m, now: 0, want: Heartbeat},
		{name: "lead is negative", state: ongoing, last: at(29 * m), written: at(0), lead: -10 * m, now: 29 * m, next: at(30 * m)},
		{name: "no lead of an early one", iv: early, state: ongoing, last: at(0), written: at(0), lead: 10 * m, now: 1*m - 1, next: at(1 * m)},
		{name: "lead after early ones", iv: early, state: ongoing, last: at(20 * m), written: at(0), beats: 9, lead: 10 * m, now: 20 * m, want: Heartbeat},

		{name: "next is the finish", state: ongoing, last: at(23 * m), written: at(0), now: 23 * m, next: at(29 * m)},
		{name: "next is both", state: ongoing, last: at(24 * m), written: at(0), now: 25 * m, next: at(30 * m)},
		{name: "next is the heartbeat", state: ongoing, last: at(25 * m), written: at(0), now: 25 * m, next: at(30 * m)},

		{name: "first", iv: early, state: ongoing, last: at(1 * m), written: at(0), now: 1*m - 1, next: at(1 * m)},
		{name: "first, at", iv: early, state: ongoing, last: at(1 * m), written: at(0), now: 1 * m, want: Heartbeat},
		{name: "second", iv: early, state: ongoing, last: at(3 * m), written: at(m), beats: 1, now: 3*m - 1, next: at(3 * m)},
		{name: "second, at", iv: early, state: ongoing, last: at(3 * m), written: at(m), beats: 1, now: 3 * m, want: Heartbeat},
		{name: "fourth, finish first", iv: early, state: ongoing, last: at(8 * m), written: at(7 * m), beats: 3, now: 8 * m, next: at(14 * m)},
		{name: "sixth", iv: early, state: ongoing, last: at(60 * m), written: at(31 * m), beats: 5, now: 61*m - 1, next: at(61 * m)},
		{name: "sixth, at", iv: early, state: ongoing, last: at(60 * m), written: at(31 * m), beats: 5, now: 61 * m, want: Heartbeat},
		{name: "any number", iv: early, state: ongoing, last: at(30 * m), written: at(0), beats: math.MaxInt, now: 30*m - 1, next: at(30 * m)},
		{name: "negative number", iv: early, state: ongoing, last: at(m), written: at(0), beats: math.MinInt, now: m, want: Heartbeat},

		{name: "short heartbeat", iv: short, state: ongoing, last: at(9 * time.Second), written: at(0), now: 10*time.Second - 1, next: at(10 * time.Second)},
		{name: "short heartbeat, at", iv: short, state: ongoing, last: at(9 * time.Second), written: at(0), now: 10 * time.Second, want: Heartbeat},

		{name: "no times at all", state: ongoing, want: Finish},
		{name: "last is ahead", state: ongoing, last: at(90 * m), written: at(0), now: 10 * m, next: at(16 * m)},
		{name: "written is ahead", state: ongoing, last: at(10 * m), written: at(90 * m), now: 10 * m, next: at(16 * m)},
		{name: "written is ahead, early", iv: early, state: ongoing, last: at(10 * m), written: at(90 * m), now: 10 * m, next: at(11 * m)},
		{name: "last is 292 years ahead", state: ongoing, last: at(never), written: at(0), now: -never, next: at(-never + 6*m)},

		{name: "negative is default", iv: Intervals{Heartbeat: -1, First: -1, Finish: -1}, state: ongoing, last: at(25 * m), written: at(0), now: 25 * m, next: at(30 * m)},
		{name: "first too long", iv: Intervals{First: 60 * m}, state: ongoing, last: at(30 * m), written: at(0), now: 30 * m, want: Heartbeat},
		{name: "no end", iv: Intervals{Finish: never}, state: ongoing, last: at(0), written: at(0), now: 29 * m, next: at(30 * m)},
		{name: "nothing ever", iv: Intervals{Heartbeat: never, Finish: never}, state: ongoing, last: at(0), written: at(0), now: 0, next: at(never)},

		{name: "finished", state: series.Finished, last: at(0), written: at(0), now: 60 * m},
		{name: "unknown", state: series.Unknown, last: at(0), written: at(0), now: 60 * m},
		{name: "no such state", state: 77, last: at(0), written: at(0), now: 60 * m},
	} {
		t.Run(fmt.Sprintf("%v/%s", tt.state, tt.name), func(t *testing.T) {
			s := tracker.Status{State: tt.state, Heartbeats: tt.beats, Waiting: tt.waiting, Lead: tt.lead}
			if tt.last != nil {
				s.Last = start.Add(*tt.last)
			}
			if tt.written != nil {
				s.Written = start.Add(*tt.written)
			}
			var next time.Time
			if tt.next != nil {
				next = start.Add(*tt.next)
			}
			gotDue, gotNext := tt.iv.Check(s, start.Add(tt.now))
			assert.Equal(t, tt.want, gotDue)
			assert.Equal(t, next, gotNext)
		})
	}
}

// TestCheckKeepsMonotonicReading: the queue depends on it, also for a series
// whose times were read from the server.
func TestCheckKeepsMonotonicReading(t *testing.T) {
	now := time.Now()
	require.True(t, hasMonotonic(now))
	for _, s := range []tracker.Status{
		{State: series.Singleton, Last: now},
		{State: series.Singleton, Last: now.Round(0)},
		{State: series.Ongoing, Last: now, Written: now},
		{State: series.Ongoing, Last: now.Round(0), Written: now.Round(0)},
	} {
		due, next := Intervals{First: time.Second}.Check(s, now)
		assert.Equal(t, None, due)
		assert.True(t, hasMonotonic(next), "%v", s)
	}
}

// hasMonotonic compares with == on purpose: Round strips the reading, and Equal
// would not see it.
func hasMonotonic(t time.Time) bool { return t != t.Round(0) }

// TestCheckHolds tries statuses at random for what Check promises of each.
func TestCheckHolds(t *testing.T) {
	rng := newRand(t)
	duration := func() time.Duration {
		switch rng.IntN(8) {
		case 0:
			return 0
		case 1:
			return never
		case 2:
			return -duration40(rng)
		default:
			return duration40(rng)
		}
	}
	moment := func() time.Time {
		if rng.IntN(8) == 0 {
			return time.Time{}
		}
		return start.Add(duration())
	}
	for range 20_000 {
		iv := Intervals{Heartbeat: duration(), First: duration(), Finish: duration()}
		s := tracker.Status{
			State:      series.State(rng.IntN(5)),
			Last:       moment(),
			Written:    moment(),
			Heartbeats: int(rng.Uint64()),
			Waiting:    rng.IntN(2) == 0,
			Lead:       duration(),
		}
		if rng.IntN(2) == 0 {
			s.Heartbeats = rng.IntN(70)
		}
		now := start.Add(duration())
		due, next := iv.Check(s, now)
		holds := func(ok bool, what string) {
			t.Helper()
			if !ok {
				require.Fail(t, what, "%+v.Check(%+v, %v) = %v, %v", iv, s, now, due, next)
			}
		}

		if s.State != series.Singleton && s.State != series.Ongoing {
			holds(due == None && next.IsZero(), "something is expected of a closed series")
			continue
		}
		holds((due == None) != next.IsZero(), "neither due nor to be looked at again, or both")
		if due != None {
			continue
		}
		holds(next.After(now), "the next look is not ahead")
		between, _ := iv.Check(s, now.Add(time.Duration(rng.Int64N(int64(next.Sub(now))))))
		holds(between == None, "due before the next look")
		if !s.Last.After(now) && !s.Written.After(now) {
			then, _ := iv.Check(s, next)
			holds(then != None, "nothing is due at the next look")
		}
	}
}

// duration40 is a duration of any order of magnitude up to 2^40 ns, 18 minutes.
func duration40(rng *rand.Rand) time.Duration {
	return time.Duration(rng.Int64N(1 << rng.IntN(41)))
}
