package events

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// kill stops a world like SIGKILL: it writes nothing more.
func (w *world) kill() {
	w.broadcaster.dispatcher.Load().cancel()
	synctest.Wait()
}

// leave has a process begin n series, which it then leaves Ongoing.
func leave(t *testing.T, s *server, sink EventSink, n int, opts Options) {
	t.Helper()
	opts.listLimit = -1
	w := startOn(t, s, sink, opts)
	for pod := range n {
		w.emit(pod)
		w.emit(pod)
	}
	w.flush(t)
	w.kill()
}

// loop emits an event each interval.
func (w *world) loop(n int, interval time.Duration) {
	for range n {
		w.emit(0)
		time.Sleep(interval)
	}
}

func (w *world) emitTimes(n int) {
	for range n {
		w.emit(0)
	}
}

// restarts are the ways in which a process finds the series of an earlier one.
var restarts = map[string]struct {
	scope    Scope
	instance string // of the second process; the first is "tester-1"
	list     bool
}{
	"by name":                  {SameInstance, "tester-1", false},
	"by listing":               {SameInstance, "tester-1", true},
	"new instance, by name":    {SameController, "tester-2", false},
	"new instance, by listing": {SameController, "tester-2", true},
}

func TestRestart(t *testing.T) {
	for name, restart := range restarts {
		runBubble(t, name, func(t *testing.T) {
			s := newLister()
			opts := Options{Scope: restart.scope, listLimit: listLimit(restart.list)}
			first := startOn(t, s.server, s, opts)
			first.loop(29*60, time.Second) // no heartbeat yet
			first.kill()
			require.EqualValues(t, 2, countOf(s.only(t)))

			opts.ReportingInstance = restart.instance
			second := startOn(t, s.server, s, opts)
			second.list()
			second.loop(10, time.Second)
			second.flush(t)
			assert.Equal(t, series.Ongoing.String(), stateOf(s.only(t)))
			time.Sleep(finishAfter + series.DefaultHeartbeat) // the first process may run
			synctest.Wait()

			event := s.only(t)
			assert.EqualValues(t, 2+10, countOf(event))
			assert.Equal(t, series.Finished.String(), stateOf(event))
			assert.Equal(t, "tester-1", event.ReportingInstance, "it is immutable")
			stats := second.broadcaster.Stats()
			if restart.list {
				assert.EqualValues(t, 1, stats.Restored)
				assert.Equal(t, 1, s.requestsOf("create"), "the list has found it")
			} else {
				assert.EqualValues(t, 1, stats.Adopted)
				assert.Zero(t, s.requestsOf("list"))
			}
			s.assertNoProblems(t)
		})
	}
}

// The server leaves out what has ended, so that takes no pages.
func TestEndedSeriesAreNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		first := startOn(t, s.server, s, Options{listLimit: -1})
		for pod := range 3 {
			first.emit(pod)
			first.emit(pod)
		}
		time.Sleep(finishAfter + time.Second)
		first.emit(3) // a singleton
		first.emit(4)
		first.emit(4)
		first.flush(t)
		first.kill()
		second := startOn(t, s.server, s, Options{})
		second.list()
		assert.Equal(t, 1, s.requestsOf("list"), "a page has room for two")
		assert.EqualValues(t, 2, second.broadcaster.Stats().Restored)
	})
}

// Each controller is listed once, when it emits its first event. The missing permission is
// logged once.
func TestListIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		s.script(failing("list", statusError(403, 0)))
		w := newWorldOn(t, s.server, s, Options{})
		early := w.broadcaster.NewRecorder(testScheme(), "example.com/early")
		early.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note")
		same := w.broadcaster.NewRecorder(testScheme(), controller)
		w.broadcaster.NewRecorder(testScheme(), "example.com/silent")
		w.start(t)
		time.Sleep(time.Hour)
		assertBetween(t, deniedLists-2, deniedLists, s.requestsOf("list"))
		w.emit(1)
		w.emit(2)
		same.Eventf(testPod(3), nil, "Normal", "Tested", "Testing", "note")
		time.Sleep(time.Hour)
		assertBetween(t, 2*(deniedLists-2), 2*deniedLists, s.requestsOf("list"))
		assert.Len(t, w.logs.with("Missing permission to list events"), s.requestsOf("list"))
		assert.Len(t, s.list(), 4)
	})
}

// A list that fails in one namespace says nothing about others.
func TestListIsForbiddenInOneNamespace(t *testing.T) {
	for name, err := range map[string]error{"forbidden": statusError(403, 0), "nonsense": statusError(400, 0)} {
		runBubble(t, name, func(t *testing.T) {
			s := newLister()
			s.script(func(_ context.Context, r request) error {
				if r.Verb != "list" || r.Namespace == "ns" {
					return nil
				}
				return err
			})
			leave(t, s.server, s, 1, Options{})

			second := startOn(t, s.server, s, Options{Namespaces: []string{"secret", "ns", "kube-system"}})
			second.list()
			time.Sleep(listedWithin + finishAfter)
			synctest.Wait()
			assert.EqualValues(t, 1, second.broadcaster.Stats().Restored)
			assert.Equal(t, []string{"Finished x2"}, statesOf(t, second))
			assert.NotEmpty(t, second.logs.with("list events", "secret"))
			assert.NotEmpty(t, second.logs.with("list events", "kube-system"))
			assert.Empty(t, second.logs.with("list events", `"ns"`))
		})
	}
}

func TestListPermissionThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		s.script(failing("list", statusError(401, 0)))
		leave(t, s.server, s, 1, Options{})

		second := startOn(t, s.server, s, Options{})
		second.list()
		time.Sleep(5 * time.Minute)
		assert.Zero(t, second.broadcaster.Stats().Restored)
		s.script(nil)
		time.Sleep(5 * time.Minute)
		assert.EqualValues(t, 1, second.broadcaster.Stats().Restored)
	})
}

// leaders are two processes of one controller.
func leaders(t *testing.T, s *server) (one, two *world) {
	t.Helper()
	one = startOn(t, s, s, Options{Scope: SameController, ReportingInstance: "tester-1"})
	two = startOn(t, s, s, Options{Scope: SameController, ReportingInstance: "tester-2"})
	return one, two
}

// namesakes are two broadcasters of the same name, in one process or in two.
func namesakes(t *testing.T, s *server) (one, two *world) {
	t.Helper()
	return startOn(t, s, s, Options{FirstHeartbeat: time.Second}), startOn(t, s, s, Options{FirstHeartbeat: time.Second})
}

// Two broadcasters of the same name emit 100 occurrences in turn.
func TestTwoBroadcastersOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		one, two := namesakes(t, s)
		for range 50 {
			one.emit(0)
			time.Sleep(time.Second)
			two.emit(0)
			time.Sleep(time.Second)
		}
		one.broadcaster.Shutdown()
		two.broadcaster.Shutdown()
		assert.EqualValues(t, 100, countOf(s.only(t)))
		assert.Less(t, len(s.log()), 100)
	})
}

func TestTwoLeaders(t *testing.T) {
	for seed := range workload.Seeds(40) {
		runBubble(t, fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			start := leaders
			if seed%2 == 0 {
				start = namesakes
			}
			s := newServer()
			s.replay = newReplay(t, seed)
			one, two := start(t, s)
			emitted := 0
			for range 200 {
				w := one
				if rng.IntN(2) == 0 {
					w = two
				}
				if rng.IntN(4) == 0 {
					w.flush(t)
				} else {
					n := 1 + rng.IntN(5)
					w.emitTimes(n)
					emitted += n
				}
				time.Sleep(time.Microsecond + time.Duration(rng.Int64N(int64(4*time.Minute))).Truncate(time.Microsecond))
				synctest.Wait()
			}
			for _, w := range []*world{one, two} {
				w.broadcaster.Shutdown()
				require.Empty(t, w.broadcaster.Stats().Dropped)
			}
			assert.EqualValues(t, emitted, s.delivered())
			s.assertNoProblems(t)
		})
	}
}

func TestLeadersInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		one, two := leaders(t, s)
		const loops, each = 50, 40
		var emitters sync.WaitGroup
		for _, w := range []*world{one, two} {
			for range 2 {
				emitters.Go(func() {
					for range loops {
						w.emitTimes(each)
						assert.NoError(t, w.broadcaster.Flush(t.Context()))
					}
				})
			}
		}
		emitters.Wait()
		one.broadcaster.Shutdown()
		two.broadcaster.Shutdown()
		assert.EqualValues(t, 4*loops*each, s.delivered())
		assert.EqualValues(t, 4*loops*each, countOf(s.only(t)))
	})
}

// The next process assumes that a loop is as slow as its Event says. If the loop becomes fast,
// a heartbeat says so, but it can come in a pause that is longer than the window of a fast loop.
func TestNoLoopIsStaleAfterARestart(t *testing.T) {
	for name, restart := range restarts {
		runBubble(t, name, func(t *testing.T) {
			on := newLister()
			opts := Options{Scope: restart.scope, listLimit: listLimit(restart.list)}
			w := startOn(t, on.server, on, opts)
			w.loop(6, 16*time.Minute)
			w.emit(0)
			w.flush(t)
			w.kill()

			opts.ReportingInstance = restart.instance
			w = startOn(t, on.server, on, opts)
			if restart.list {
				w.list()
			}
			w.loop(45, 20*time.Second)
			time.Sleep(16 * time.Minute) // the heartbeat comes
			for range 180 {
				w.emit(0)
				for range 2 {
					time.Sleep(10 * time.Second)
					synctest.Wait()
					event := on.only(t)
					require.Equal(t, series.Ongoing, series.StateAt(event, time.Now()), event)
				}
			}
		})
	}
}
