package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/internal/wallclock"
	"github.com/eventseries/eventseries/series"
)

// What must hold whatever the clocks do: nothing is lost, nothing on the server
// goes back, nothing is kept for ever. What more can be had depends on the clock:
//
//   - Go's times have a monotonic reading. By that a wall clock that is set is
//     nothing: not one request comes sooner or later.
//   - Where it stands still while the machine is suspended (Linux), so does all
//     that the recorder does, and goes on where it was.
//   - Where it goes on while the process is stopped, what is overdue is done at
//     once; see suspend_test.go.
//   - A clock of the user's may have no monotonic reading. Then a time that was
//     set cannot be told from one that has passed.
//   - The times of another process are by the wall clock, always.

// machineClock is the clock of a machine whose wall clock can be set. Its timers
// are those of the bubble.
type machineClock struct {
	clock.RealClock
	// boot has a monotonic reading, which the times of a bubble have not.
	boot     time.Time
	begin    time.Time // of the bubble
	set      atomic.Int64
	wallOnly bool
}

// bootTime is from outside of all bubbles.
var bootTime = time.Now()

// newMachineClock returns a clock that is right. It is for one bubble.
func newMachineClock() *machineClock { return &machineClock{boot: bootTime, begin: time.Now()} }

// setBy sets the wall clock by so much more.
func (c *machineClock) setBy(d time.Duration) { c.set.Add(int64(d)) }

func (c *machineClock) Now() time.Time {
	now := wallclock.Set(c.boot.Add(time.Since(c.begin)), time.Duration(c.set.Load()))
	if c.wallOnly {
		now = now.Round(0)
	}
	return now
}

func (c *machineClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// sent is what a request tells the server of a series.
type sent struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	EventTime metav1.MicroTime `json:"eventTime"`
	Series    struct {
		Count            int              `json:"count"`
		LastObservedTime metav1.MicroTime `json:"lastObservedTime"`
	} `json:"series"`
}

func sentIn(t *testing.T, r request) (s sent) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.body), &s), r.body)
	return s
}

// assertTimesNeverGoBack fails the test if the server was told a time of a series
// that is before one that it was told earlier, or before its first.
func assertTimesNeverGoBack(t *testing.T, log []request) {
	t.Helper()
	latest := map[string]time.Time{}
	for _, r := range log {
		s := sentIn(t, r)
		now := s.Series.LastObservedTime.Time
		if now.IsZero() {
			now = s.EventTime.Time
		}
		if now.IsZero() {
			continue // of annotations only
		}
		assert.False(t, now.Before(latest[r.name.Name]), "%v: %v before %v", r, now, latest[r.name.Name])
		latest[r.name.Name] = now
	}
}

// story returns what was requested when, without wall times and the names that
// are made of them.
func story(t *testing.T, begin time.Time, log []request) (lines []string) {
	t.Helper()
	for _, r := range log {
		pod, _, _ := strings.Cut(r.name.Name, ".")
		s := sentIn(t, r)
		lines = append(lines, fmt.Sprintf("%06.0fs %s %s x%d %s", r.at.Sub(begin).Seconds(), r.verb, pod, s.Series.Count, s.Metadata.Annotations[series.AnnotationState]))
	}
	slices.Sort(lines) // what is written at the same time is written in any order
	return lines
}

// ninetyMinutes is a loop that ends, one that begins late, something that happens
// every 5 minutes, and something that happens every 7 minutes. The periods are
// such that no heartbeat is due in the very second of an occurrence.
func ninetyMinutes(w *world, at func(minute int)) {
	for second := range 90 * 60 {
		if second%60 == 0 {
			at(second / 60)
		}
		for pod, loop := range []struct{ every, from, until int }{
			{47, 0, 70 * 60},
			{53, 40 * 60, 90 * 60},
			{5*60 + 1, 0, 90 * 60},
			{7*60 + 1, 0, 90 * 60},
		} {
			if second%loop.every == 0 && second >= loop.from && second < loop.until {
				w.emit(pod)
			}
		}
		time.Sleep(time.Second)
	}
	time.Sleep(tracker.DefaultWindow)
}

// A wall clock that is set closes nothing early and keeps nothing longer: each
// request comes when it would have come.
func TestWallClockIsSet(t *testing.T) {
	tell := func(t *testing.T, sets map[int]time.Duration) (told []string) {
		synctest.Test(t, func(t *testing.T) {
			begin, machine := time.Now(), newMachineClock()
			w := newWorld(t, Options{Clock: machine})
			w.start(t)
			ninetyMinutes(w, func(minute int) { machine.setBy(sets[minute]) })
			synctest.Wait()
			told = story(t, begin, w.server.log())
			assert.Zero(t, w.broadcaster.Stats().Tracked)
			assertTimesNeverGoBack(t, w.server.log())
			w.broadcaster.Shutdown()
			w.assertAccounted(t)
		})
		return told
	}
	want := tell(t, nil)
	require.Greater(t, len(want), 20)
	for name, sets := range map[string]map[int]time.Duration{
		"back":             {33: -time.Hour},
		"ahead":            {33: time.Hour},
		"back and right":   {3: -time.Hour, 62: time.Hour},
		"ahead and right":  {3: time.Hour, 62: -time.Hour},
		"days":             {10: -48 * time.Hour, 20: 96 * time.Hour},
		"after the end":    {72: -time.Hour},
		"every so often":   {5: time.Hour, 11: -2 * time.Hour, 28: time.Hour, 59: 2 * time.Hour, 71: -time.Hour},
		"before the first": {0: -time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, want, tell(t, sets))
		})
	}
}

// Pauses and retries are no longer and no shorter either.
func TestWallClockIsSetInAnOutage(t *testing.T) {
	for code, again := range map[int32]time.Duration{429: pauseFirst, 500: retryFirst, 403: retryMax} {
		for _, by := range []time.Duration{-time.Hour, time.Hour} {
			t.Run(fmt.Sprintf("%d %v", code, by), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					machine := newMachineClock()
					w := newWorld(t, Options{Clock: machine})
					w.server.script(once(statusError(code, 0)))
					w.start(t)
					begin := time.Now()
					w.emit(0)
					time.Sleep(again / 2)
					machine.setBy(by)
					w.emit(1)
					time.Sleep(2 * again)
					log := w.server.log()
					require.NotEmpty(t, log)
					last := log[len(log)-1].at.Sub(begin)
					assert.GreaterOrEqual(t, last, again)
					assert.LessOrEqual(t, last, time.Duration(float64(again)*1.2))
					w.broadcaster.Shutdown()
					w.assertAccounted(t)
				})
			})
		}
	}
}

// A suspended machine's monotonic clock stands still, at least on Linux, while its
// wall clock and the server go on. All series are where they were; their Events
// may be gone.
func TestMachineIsSuspended(t *testing.T) {
	for _, expired := range []bool{false, true} {
		t.Run(fmt.Sprintf("expired: %v", expired), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machine := newMachineClock()
				w := newWorld(t, Options{Clock: machine})
				w.start(t)
				w.emit(1)
				w.emit(2)
				w.emit(2)
				w.loop(10, 10*time.Second)
				first := w.server.list()[0].EventTime
				machine.setBy(time.Hour)
				if expired {
					w.server.remove()
				}
				w.emit(1) // within its window, as far as the process has lived
				w.loop(30, time.Minute)
				synctest.Wait()
				list := w.server.list()
				assert.Equal(t, []string{"Ongoing x39", "Finished x2", "Finished x2"}, statesOf(t, w), "as of the heartbeat")
				assert.Equal(t, first.UnixMicro(), list[0].EventTime.UnixMicro())
				time.Sleep(tracker.DefaultWindow)
				synctest.Wait()
				assert.Equal(t, []string{"Finished x40", "Finished x2", "Finished x2"}, statesOf(t, w))
				assert.Zero(t, w.broadcaster.Stats().Tracked)
				assertTimesNeverGoBack(t, w.server.log())
				w.broadcaster.Shutdown()
				w.assertAccounted(t)
			})
		})
	}
}

// statesOf returns state and count of the Events on the server, by name.
func statesOf(t *testing.T, w *world) (states []string) {
	t.Helper()
	for _, event := range w.server.list() {
		states = append(states, fmt.Sprintf("%s x%d", stateOf(event), countOf(event)))
	}
	return states
}

// Without monotonic readings an hour that the clock is set ahead looks like an hour
// that has passed: what was running is closed, and begins anew. An hour back looks
// like a caller that is late: what was running is kept for that hour, and no longer.
func TestClockWithoutMonotonicTimeIsSet(t *testing.T) {
	for _, row := range []struct {
		by         time.Duration
		wantEvents int
		wantKept   time.Duration
	}{
		{by: -time.Hour, wantEvents: 1, wantKept: time.Hour},
		{by: time.Hour, wantEvents: 2},
	} {
		t.Run(row.by.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				machine := newMachineClock()
				machine.wallOnly = true
				w := newWorld(t, Options{Clock: machine})
				w.start(t)
				w.loop(10, time.Minute)
				machine.setBy(row.by)
				w.loop(30, time.Minute)
				last := time.Now().Add(-time.Minute)
				w.emit(1) // and what is new is written as ever
				synctest.Wait()
				assert.Len(t, w.server.list(), row.wantEvents+1)
				for w.broadcaster.Stats().Tracked > 0 {
					time.Sleep(time.Minute)
					require.LessOrEqual(t, time.Since(last), row.wantKept+2*tracker.DefaultWindow, "it is not kept for ever")
				}
				synctest.Wait()
				for _, event := range w.server.list() {
					if countOf(event) > 1 {
						assert.Equal(t, series.Finished.String(), stateOf(event))
					}
				}
				assertTimesNeverGoBack(t, w.server.log())
				w.broadcaster.Shutdown()
				w.assertAccounted(t)
			})
		})
	}
}

// A process can judge the Events of the one before it by its own clock alone.
func TestRestartWithAnotherClock(t *testing.T) {
	for _, row := range []struct {
		by   time.Duration
		want []string // the Events, by name: the base name first
	}{
		// As it seems, nobody has tended it for an hour: it is closed.
		{by: time.Hour, want: []string{"Finished x10", "Ongoing x10"}},
		{by: 10 * time.Minute, want: []string{"Ongoing x20"}},
		{by: -30 * time.Second, want: []string{"Ongoing x20"}},
		// It seems to be from the future, and nothing from there is believed. It
		// says Ongoing until it expires.
		{by: -time.Hour, want: []string{"Ongoing x10", "Ongoing x10"}},
	} {
		for _, list := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, list: %v", row.by, list), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &lister{server: newServer()}
					machine := newMachineClock()
					first := newWorldOn(t, s.server, s, Options{Clock: machine, SkipList: !list})
					first.start(t)
					first.loop(10, time.Second)
					first.broadcaster.Shutdown()

					machine.setBy(row.by)
					second := newWorldOn(t, s.server, s, Options{Clock: machine, SkipList: !list})
					second.start(t)
					synctest.Wait()
					second.loop(10, time.Second)
					second.broadcaster.Shutdown()
					assert.Equal(t, row.want, statesOf(t, second))
					s.assertNoProblems(t)
				})
			})
		}
	}
}
