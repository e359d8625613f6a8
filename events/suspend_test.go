package events

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

// The tests in this file are about a process that does not run for an hour while
// all clocks go on: it is stopped (SIGSTOP, a frozen container), or the host
// does not run its machine. When it runs again, everything is overdue at once.

// wake has an hour pass in which the process does nothing. Its timers come after
// first, in which it may already have done something.
func wake(clock *clocktesting.FakeClock, first func()) {
	clock.FakePassiveClock.SetTime(clock.Now().Add(time.Hour))
	first()
	clock.Step(0)
	synctest.Wait()
}

// Whichever is first, the loop or the deadlines: what ran before the hour has
// ended, with the count and the time that it had, and what comes is new.
func TestProcessIsStopped(t *testing.T) {
	for _, sooner := range []string{"the loop", "the deadlines"} {
		t.Run(sooner+" first", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := clocktesting.NewFakeClock(time.Now())
				w := newWorld(t, Options{Clock: clock})
				w.start(t)
				var last time.Time
				for range 27 { // its heartbeat is overdue as well then
					last = clock.Now()
					w.emit(0)
					clock.Step(time.Minute)
					synctest.Wait()
				}
				w.emit(1) // a singleton
				synctest.Wait()
				before := len(w.server.log())

				both := func() {
					w.emit(0)
					w.emit(1)
				}
				if sooner == "the loop" {
					wake(clock, both)
				} else {
					wake(clock, func() {})
					both()
				}
				synctest.Wait()
				list := w.server.list()
				require.Len(t, list, 4)
				assert.Equal(t, []string{"Finished x27", " x1", " x1", " x1"}, statesOf(t, w))
				assert.Equal(t, last.UnixMicro(), list[0].Series.LastObservedTime.UnixMicro())
				assert.Len(t, w.server.log()[before:], 3, "one closing write, two creates, and no heartbeat")

				// It goes on from there.
				w.emit(0)
				synctest.Wait()
				assert.Equal(t, "Ongoing x2", statesOf(t, w)[1])
				for w.broadcaster.Stats().Tracked > 0 {
					clock.Step(time.Minute)
					synctest.Wait()
					require.Less(t, clock.Since(last), 2*time.Hour)
				}
				assert.Equal(t, []string{"Finished x27", "Finished x2", " x1", " x1"}, statesOf(t, w))
				assertTimesNeverGoBack(t, w.server.log())
				w.broadcaster.Shutdown()
				w.assertAccounted(t)
			})
		})
	}
}

// It was stopped in the middle of a request. The server may have done what it was
// asked, or not.
func TestProcessIsStoppedInARequest(t *testing.T) {
	for _, done := range []bool{true, false} {
		t.Run(fmt.Sprintf("done: %v", done), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := clocktesting.NewFakeClock(time.Now())
				w := newWorld(t, Options{Clock: clock})
				answer := make(chan struct{})
				if done {
					w.server.lose = func(request) error {
						<-answer
						return context.DeadlineExceeded
					}
				} else {
					w.server.script(func(context.Context, request) error {
						<-answer
						return context.DeadlineExceeded
					})
				}
				w.start(t)
				w.emit(0)
				w.emit(0)
				synctest.Wait()
				wake(clock, func() { w.emit(0) })
				w.server.script(nil)
				w.server.mu.Lock()
				w.server.lose = nil
				w.server.mu.Unlock()
				close(answer)
				synctest.Wait()
				clock.Step(2 * time.Second) // until it is tried again
				synctest.Wait()
				assert.Equal(t, []string{"Finished x2", " x1"}, statesOf(t, w))
				w.broadcaster.Shutdown()
				w.assertAccounted(t)
			})
		})
	}
}

// A thousand loops do not send a thousand heartbeats when they are all overdue
// and go on: they have ended.
func TestManyLoopsAreStopped(t *testing.T) {
	const loops = 1_000
	synctest.Test(t, func(t *testing.T) {
		clock := clocktesting.NewFakeClock(time.Now())
		w := newWorld(t, Options{Clock: clock, QPS: -1})
		w.start(t)
		all := func() {
			for pod := range loops {
				w.emit(pod)
				w.emit(pod)
			}
		}
		all()
		w.flush(t)
		before := w.broadcaster.Stats().Requests()
		wake(clock, all)
		w.flush(t)
		assert.LessOrEqual(t, w.broadcaster.Stats().Requests()-before, uint64(4*loops), "a closing write, a create, a series and a signpost each")
		assert.Zero(t, w.broadcaster.Stats().Writes[WriteKey{"heartbeat", "written"}])
		clock.Step(tracker.DefaultWindow)
		synctest.Wait()
		assert.Zero(t, w.broadcaster.Stats().Tracked)
		for _, event := range w.server.list() {
			require.Equal(t, "Finished x2", fmt.Sprintf("%s x%d", stateOf(event), countOf(event)))
		}
		w.broadcaster.Shutdown()
		w.assertAccounted(t)
	})
}
