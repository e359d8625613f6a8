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
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/internal/wallclock"
	"github.com/eventseries/eventseries/series"
)

// Whatever clocks do, nothing is lost, times on the server never go back, and no
// series is kept forever. The rest depends on the clock:
//
//   - A time of Go has a monotonic reading. Setting the wall clock changes nothing, except
//     that a heartbeat is due if it is set ahead.
//   - On Linux the monotonic clock stands still while the machine is suspended. Then the wall
//     clock is ahead, too.
//   - It continues while the process is stopped. Then everything is overdue at once.
//   - Times of other processes are wall times.

// machineClock is a clock whose wall time can be set. Its timers are those of the
// bubble.
type machineClock struct {
	clock.RealClock
	// boot has a monotonic reading, unlike times in a bubble.
	boot  time.Time
	begin time.Time // of the bubble
	set   atomic.Int64
}

// bootTime is from outside all bubbles. Its wall time is the same in each process.
var bootTime = wallclock.At(time.Now(), time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))

// newMachineClock returns a correct clock for one bubble.
func newMachineClock() *machineClock { return &machineClock{boot: bootTime, begin: time.Now()} }

// setBy moves the wall clock.
func (c *machineClock) setBy(d time.Duration) { c.set.Add(int64(d)) }

func (c *machineClock) Now() time.Time {
	return wallclock.Set(c.boot.Add(time.Since(c.begin)), time.Duration(c.set.Load()))
}

func (c *machineClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// sent is what a request says about a series.
type sent struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Series struct {
		Count int `json:"count"`
	} `json:"series"`
}

// story returns the requests and when they were made, without wall times and names
// that depend on them.
func story(t *testing.T, begin time.Time, log []request) (lines []string) {
	t.Helper()
	for _, r := range log {
		pod, _, _ := strings.Cut(r.Name, ".")
		var s sent
		require.NoError(t, json.Unmarshal([]byte(r.Body), &s), r.Body)
		lines = append(lines, fmt.Sprintf("%06.0fs %s %s x%d %s", r.Time.Sub(begin).Seconds(), r.Verb, pod, s.Series.Count, s.Metadata.Labels[series.LabelState]))
	}
	slices.Sort(lines) // what is written at the same time is written in any order
	return lines
}

// ninetyMinutes emits two loops and events every 5 and 7 minutes. No heartbeat is due
// in the second of an occurrence.
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
	time.Sleep(2 * time.Hour) // the Events expire
}

func TestWallClockIsSet(t *testing.T) {
	tell := func(t *testing.T, sets map[int]time.Duration) (told []string) {
		synctest.Test(t, func(t *testing.T) {
			begin, machine := time.Now(), newMachineClock()
			w := newWorld(t, Options{clock: machine})
			w.start(t)
			ninetyMinutes(w, func(minute int) { machine.setBy(sets[minute]) })
			synctest.Wait()
			told = story(t, begin, w.server.log())
			assert.Zero(t, w.broadcaster.Stats().Tracked)
			w.broadcaster.Shutdown()
			w.assertAccounted(t)
		})
		return told
	}
	want := tell(t, nil)
	require.Greater(t, len(want), 15)
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
			told, most := tell(t, sets), 0
			for _, by := range sets {
				if by > 0 {
					most += 4 // series
				}
			}
			if most > 0 {
				isHeartbeat := func(line string) bool { return strings.HasSuffix(line, " ") && strings.Contains(line, "patch") }
				assert.LessOrEqual(t, len(told), len(want)+most)
				told = slices.DeleteFunc(told, isHeartbeat)
				want := slices.DeleteFunc(slices.Clone(want), isHeartbeat)
				assert.Equal(t, want, told)
				return
			}
			assert.Equal(t, want, told)
		})
	}
}

// wallServer is the clock of a server that is right, whatever happens to the machine.
type wallServer struct{ *machineClock }

func (c wallServer) Now() time.Time { return c.machineClock.Now().Round(0) }

func (c wallServer) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// The machine is suspended, in which its monotonic clock stands still, or its clock was behind and is
// set right. The Event of a loop may have expired meanwhile. The next heartbeat creates it again, and no occurrence
// is lost.
func TestMachineIsSuspended(t *testing.T) {
	for _, by := range []time.Duration{20 * time.Minute, time.Hour, 24 * time.Hour, 56 * 365 * 24 * time.Hour} {
		for _, after := range []time.Duration{time.Minute, 5 * time.Minute, 40 * time.Minute} {
			runBubble(t, fmt.Sprint(by, " after ", after), func(t *testing.T) {
				machine := newMachineClock()
				machine.setBy(-by)
				w := newWorld(t, Options{clock: machine, EventTTL: time.Hour})
				w.server.api.Clock = wallServer{machine}
				w.start(t)
				w.loop(int(after/(5*time.Second)), 5*time.Second)
				machine.setBy(by)
				w.loop(30*12, 5*time.Second)
				for range 2 * 60 * 12 {
					event := w.server.only(t)
					require.Equal(t, series.Ongoing, series.StateAt(event, machine.Now()))
					w.loop(1, 5*time.Second)
				}
				assert.LessOrEqual(t, len(w.server.log()), 2+2+5, "two for each beginning, and one for each half hour")
				w.broadcaster.Shutdown()
				w.assertAccounted(t)
			})
		}
	}
}

// Pauses and retries keep their length.
func TestWallClockIsSetInAnOutage(t *testing.T) {
	for code, again := range map[int32]time.Duration{429: 5 * retryFirst, 500: retryFirst, 403: retryFirst} {
		retryAfter := int32(0)
		if code == 429 {
			retryAfter = 5
		}
		for _, by := range []time.Duration{-time.Hour, time.Hour} {
			runBubble(t, fmt.Sprintf("%d %v", code, by), func(t *testing.T) {
				machine := newMachineClock()
				w := newWorld(t, Options{clock: machine})
				w.server.script(once(statusError(code, retryAfter)))
				w.start(t)
				begin := time.Now()
				w.emit(0)
				time.Sleep(again / 2)
				machine.setBy(by)
				w.emit(1)
				time.Sleep(2 * again)
				log := w.server.log()
				require.NotEmpty(t, log)
				last := log[len(log)-1].Time.Sub(begin)
				assert.GreaterOrEqual(t, last, again)
				assert.LessOrEqual(t, last, time.Duration(float64(again)*1.2))
				w.broadcaster.Shutdown()
				w.assertAccounted(t)
			})
		}
	}
}

// statesOf returns the states and counts of the Events on the server, by name.
func statesOf(t *testing.T, w *world) (states []string) {
	t.Helper()
	for _, event := range w.server.list() {
		states = append(states, fmt.Sprintf("%s x%d", stateOf(event), countOf(event)))
	}
	return states
}

// A process is stopped for an hour (SIGSTOP, a frozen container) while all clocks
// continue. The series from before the hour counts on, and is no loop.
func TestProcessIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := clocktesting.NewFakeClock(time.Now())
		w := newWorld(t, Options{clock: clock})
		w.start(t)
		for range 27 { // its heartbeat is overdue as well then
			w.emit(0)
			clock.Step(time.Minute)
			synctest.Wait()
		}
		w.emit(1) // a singleton
		synctest.Wait()
		before := len(w.server.log())

		clock.FakePassiveClock.SetTime(clock.Now().Add(time.Hour)) // without timers
		w.emit(0)
		w.emit(1)
		clock.Step(1)
		synctest.Wait()
		list := w.server.list()
		require.Len(t, list, 2)
		assert.Equal(t, []string{"Finished x28", "Finished x2"}, statesOf(t, w))
		assert.Equal(t, clock.Now().UnixMicro(), list[0].Series.LastObservedTime.UnixMicro())
		assert.Len(t, w.server.log()[before:], 2, "and no heartbeat")
		w.broadcaster.Shutdown()
		w.assertAccounted(t)
	})
}
