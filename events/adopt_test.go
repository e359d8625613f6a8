package events

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/internal/tracker"
	"github.com/eventseries/eventseries/series"
)

// lister is a server that can be listed, in pages of two.
type lister struct {
	*server
	err   atomic.Pointer[error] // what it answers with; nil: it works
	pages atomic.Int32
}

// listerThatFails returns a lister that answers with err.
func listerThatFails(err error) *lister {
	l := &lister{server: newServer()}
	l.err.Store(&err)
	return l
}

func (l *lister) List(_ context.Context, _ string, opts metav1.ListOptions) (*eventsv1.EventList, error) {
	l.pages.Add(1)
	if err := l.err.Load(); err != nil {
		return nil, *err
	}
	if opts.FieldSelector != "reportingController="+controller {
		return nil, errors.New("not selected: " + opts.FieldSelector)
	}
	from, _ := strconv.Atoi(opts.Continue)
	all := l.list()
	page := &eventsv1.EventList{}
	for _, event := range all[from:min(from+2, len(all))] {
		page.Items = append(page.Items, *event)
	}
	if from+2 < len(all) {
		page.Continue = strconv.Itoa(from + 2)
	}
	return page, nil
}

// kill ends a world as SIGKILL would: nothing is written any more.
func (w *world) kill() {
	w.broadcaster.writer.Load().stop()
	synctest.Wait()
}

// loop emits an event each interval.
func (w *world) loop(n int, interval time.Duration) {
	for range n {
		w.emit(0)
		time.Sleep(interval)
	}
}

// restarts are the ways in which a process can find the series of the one before
// it.
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lister{server: newServer()}
				first := newWorldOn(t, s.server, s, Options{Scope: restart.scope, SkipList: !restart.list})
				first.start(t)
				first.loop(10, time.Second)
				first.broadcaster.Shutdown()

				second := newWorldOn(t, s.server, s, Options{Scope: restart.scope, SkipList: !restart.list, ReportingInstance: restart.instance})
				second.start(t)
				synctest.Wait()
				second.loop(10, time.Second)
				time.Sleep(tracker.DefaultWindow)
				synctest.Wait()

				event := s.only(t)
				assert.EqualValues(t, 20, countOf(event))
				assert.Equal(t, series.Finished.String(), stateOf(event))
				assert.Equal(t, "tester-1", event.ReportingInstance, "that is immutable")
				stats := second.broadcaster.Stats()
				if restart.list {
					assert.EqualValues(t, 1, stats.Restored)
					assert.Zero(t, s.requestsOf("create")-1, "the list has found it")
				} else {
					assert.EqualValues(t, 1, stats.Adopted)
					assert.Zero(t, s.pages.Load())
				}
				s.assertNoProblems(t)
			})
		})
	}
}

// What the server knows of a series is as old as its last heartbeat.
func TestRestartAfterAKillBeforeTheHeartbeat(t *testing.T) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lister{server: newServer()}
				first := newWorldOn(t, s.server, s, Options{Scope: restart.scope, SkipList: !restart.list})
				first.start(t)
				first.loop(29*60, time.Second)
				first.kill()
				require.EqualValues(t, 2, countOf(s.only(t)), "no heartbeat yet")

				second := newWorldOn(t, s.server, s, Options{Scope: restart.scope, SkipList: !restart.list, ReportingInstance: restart.instance})
				second.start(t)
				synctest.Wait()
				second.loop(10, time.Second)
				second.flush(t)
				assert.EqualValues(t, 12, countOf(s.only(t)))
				assert.Equal(t, series.Ongoing.String(), stateOf(s.only(t)))
				s.assertNoProblems(t)
			})
		})
	}
}

// Nobody tends a series that has been silent for a heartbeat and a window.
func TestRestartAfterTheSeriesIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := newWorldOn(t, s, s, Options{})
		first.start(t)
		first.loop(10, time.Second)
		first.flush(t)
		first.kill()
		time.Sleep(tracker.DefaultHeartbeat + tracker.DefaultWindow)

		second := newWorldOn(t, s, s, Options{})
		second.start(t)
		second.loop(3, time.Second)
		second.broadcaster.Shutdown()
		list := s.list()
		require.Len(t, list, 2)
		assert.EqualValues(t, 10, countOf(list[0]))
		assert.Equal(t, series.Finished.String(), stateOf(list[0]), "nobody else would close it")
		assert.EqualValues(t, 3, countOf(list[1]))
		s.assertNoProblems(t)
	})
}

// A loop that has ended and come back is under a unique name, to which the Event
// under the base name leads.
func TestRestartFindsTheSuccessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first := newWorldOn(t, s, s, Options{SkipList: true})
		first.start(t)
		first.loop(10, time.Second)
		time.Sleep(20 * time.Minute)
		before := len(s.log())
		first.loop(120, time.Minute)
		// A create, a series and a signpost; two heartbeats an hour, each with the
		// signpost.
		assert.LessOrEqual(t, len(s.log())-before, 3+2*2*2)
		first.broadcaster.Shutdown()

		second := newWorldOn(t, s, s, Options{SkipList: true})
		second.start(t)
		second.loop(10, time.Second)
		second.broadcaster.Shutdown()
		list := s.list()
		require.Len(t, list, 2)
		assert.EqualValues(t, 10, countOf(list[0]))
		assert.EqualValues(t, 130, countOf(list[1]))
		assert.EqualValues(t, 1, second.broadcaster.Stats().Adopted)
		s.assertNoProblems(t)
	})
}

// The server has done it, but the answer was lost: nothing is counted twice.
func TestLostAnswers(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *world) {
		var answers atomic.Int32
		w.server.lose = func(request) error {
			if answers.Add(1)%2 == 1 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		for pod := range 10 {
			w.emit(pod)
		}
		w.loop(10, time.Minute)
		w.flush(t)
		assert.Len(t, w.server.list(), 10)
		assert.Zero(t, w.broadcaster.Stats().Adopted, "its own are not those of others")
	})
}

// What was listed and does not show itself is closed, with the time that it had.
func TestListedSeriesThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lister{server: newServer()}
		first := newWorldOn(t, s.server, s, Options{})
		first.start(t)
		synctest.Wait() // until it has listed what there is: nothing
		for pod := range 5 {
			first.emit(pod)
			first.emit(pod)
		}
		first.flush(t)
		last := s.list()[0].Series.LastObservedTime
		first.kill()
		time.Sleep(time.Minute)

		second := newWorldOn(t, s.server, s, Options{})
		second.start(t)
		time.Sleep(tracker.DefaultWindow)
		synctest.Wait()
		assert.EqualValues(t, 1+3, s.pages.Load())
		for _, event := range s.list() {
			assert.Equal(t, series.Finished.String(), stateOf(event))
			assert.EqualValues(t, 2, countOf(event))
			assert.True(t, last.Equal(&event.Series.LastObservedTime), "it has not occurred since")
		}
		assert.Zero(t, second.broadcaster.Stats().Tracked)
	})
}

func TestListIsForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listerThatFails(statusError(403, 0))
		w := newWorldOn(t, s.server, s, Options{})
		w.start(t)
		w.emit(0)
		w.flush(t)
		time.Sleep(time.Hour)
		assert.EqualValues(t, 1, s.pages.Load(), "once is enough")
		assert.EqualValues(t, 1, countOf(s.only(t)))
	})
}

func TestListIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := listerThatFails(statusError(503, 0))
		w := newWorldOn(t, s.server, s, Options{})
		w.start(t)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Greater(t, s.pages.Load(), int32(5))
		assert.Less(t, s.pages.Load(), int32(15))
		s.err.Store(nil)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 1, w.broadcaster.Stats().Writes[WriteKey{"list", "written"}])
	})
}
