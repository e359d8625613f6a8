package heartbeat

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// loop is a series that occurs at regular intervals until it ends.
type loop struct {
	item
	tracker.Status
	every, until time.Duration
	offset       time.Duration // when it became a series
	did          []event
}

// event is what became due, and when: as a distance to start plus offset.
type event struct {
	due Due
	at  time.Duration
}

// lastBefore moves Last to the latest occurrence up to now.
func (l *loop) lastBefore(now time.Time) {
	ran := min(now.Sub(start)-l.offset, l.until)
	l.Last = start.Add(l.offset + ran.Truncate(l.every))
}

// run lives the given loops in virtual time, as a program with one timer would:
// it sleeps until the queue's next deadline, and does what is due.
func run(t *testing.T, iv Intervals, loops []*loop) {
	t.Helper()
	var queue Queue[*loop]
	check := func(l *loop, now time.Time) {
		for {
			l.lastBefore(now)
			due, next := iv.Check(l.Status, now)
			if due == None {
				if !next.IsZero() {
					queue.Set(l, next)
				}
				return
			}
			l.did = append(l.did, event{due, now.Sub(start) - l.offset})
			if due == Heartbeat {
				l.Written = now
				l.Heartbeats++
			} else {
				l.State = series.Finished
			}
		}
	}
	for _, l := range loops {
		l.Written = start.Add(l.offset)
		check(l, l.Written)
	}
	buf := make([]*loop, 3)
	for steps := 0; queue.Len() > 0; steps++ {
		require.Less(t, steps, 1_000_000, "it goes round and round")
		now, _ := queue.Next()
		for _, l := range buf[:queue.PopDue(buf, now)] {
			check(l, now)
		}
	}
}

func TestLife(t *testing.T) {
	const s, m = time.Second, time.Minute
	// beats are heartbeats at the given minutes; then the series finishes.
	beats := func(finish time.Duration, minutes ...int) (events []event) {
		for _, at := range minutes {
			events = append(events, event{Heartbeat, time.Duration(at) * m})
		}
		return append(events, event{Finish, finish})
	}
	for _, tt := range []struct {
		name         string
		iv           Intervals
		every, until time.Duration
		want         []event
	}{
		{
			name: "three hours", every: s, until: 180 * m,
			want: beats(186*m, 30, 60, 90, 120, 150, 180),
		},
		{
			name: "three hours, early heartbeats", iv: Intervals{First: m}, every: s, until: 180 * m,
			want: beats(186*m, 1, 3, 7, 15, 31, 61, 91, 121, 151, 181),
		},
		{
			name: "hot", every: 10 * time.Millisecond, until: 60*m - 1,
			want: beats(66*m-10*time.Millisecond, 30, 60),
		},
		{
			name: "just often enough", every: 6*m - 1, until: 20 * m,
			want: beats(24*m - 3),
		},
		{
			name: "finished one ns before a heartbeat", every: 24*m - 1, until: 24 * m,
			iv:   Intervals{Finish: 24 * m, Heartbeat: 48 * m},
			want: beats(48*m - 1),
		},
		{
			name: "finished with a heartbeat", every: 24 * m, until: 24 * m,
			iv:   Intervals{Finish: 24*m + 1, Heartbeat: 48*m + 1},
			want: beats(48*m + 1),
		},
		{
			name: "a heartbeat one ns before the end", every: 24 * m, until: 24 * m,
			iv:   Intervals{Finish: 24*m + 1, Heartbeat: 48 * m},
			want: beats(48*m+1, 48),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The same loop at many offsets: deadlines belong to each series.
			var loops []*loop
			for i := range 100 {
				loops = append(loops, &loop{
					Status: tracker.Status{State: series.Ongoing},
					every:  tt.every,
					until:  tt.until,
					offset: time.Duration(i*i) * s,
				})
			}
			run(t, tt.iv, loops)
			for _, l := range loops {
				assert.Equal(t, tt.want, l.did)
			}
		})
	}
}
