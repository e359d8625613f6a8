package events

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/series"
)

// leaders are two processes of one controller that write to the same server.
func leaders(t *testing.T) (s *server, one, two *world) {
	t.Helper()
	s = newServer()
	one = newWorldOn(t, s, s, Options{Scope: SameController, ReportingInstance: "tester-1"})
	two = newWorldOn(t, s, s, Options{Scope: SameController, ReportingInstance: "tester-2"})
	one.start(t)
	two.start(t)
	return s, one, two
}

func (w *world) emitTimes(n int) {
	for range n {
		w.emit(0)
	}
}

// A leader that has lost its lease shuts down, and writes what it had not written,
// when the next one has gone on in the same Event for some time.
func TestDeposedLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, deposed, leader := leaders(t)
		deposed.emitTimes(10)
		deposed.flush(t)
		deposed.emitTimes(5)
		time.Sleep(time.Minute)
		leader.emitTimes(50)
		leader.flush(t)
		assert.EqualValues(t, 60, countOf(s.only(t)))
		time.Sleep(time.Minute)
		deposed.broadcaster.Shutdown()
		assert.EqualValues(t, 65, countOf(s.only(t)))
		leader.emit(0)
		leader.broadcaster.Shutdown()
		event := s.only(t)
		assert.EqualValues(t, 66, countOf(event))
		assert.Equal(t, series.Ongoing.String(), stateOf(event))
		s.assertNoProblems(t)
	})
}

// One that is not told that it is deposed goes quiet. It does not close what the
// next one goes on with.
func TestDeposedLeaderGoesQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, deposed, leader := leaders(t)
		deposed.emitTimes(10)
		deposed.flush(t)
		deposed.emitTimes(5)
		for range 20 {
			time.Sleep(time.Minute)
			leader.emit(0)
		}
		leader.flush(t)
		event := s.only(t)
		assert.EqualValues(t, 35, countOf(event))
		assert.Equal(t, series.Ongoing.String(), stateOf(event))
		assert.Zero(t, deposed.broadcaster.Stats().Tracked)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, series.Finished.String(), stateOf(s.only(t)))
		s.assertNoProblems(t)
	})
}

// Whatever two of them do, nothing is lost and nothing is counted twice.
func TestTwoLeaders(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				s, one, two := leaders(t)
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
					time.Sleep(1 + time.Duration(rng.Int64N(int64(4*time.Minute))))
					synctest.Wait()
				}
				one.broadcaster.Shutdown()
				two.broadcaster.Shutdown()
				assert.EqualValues(t, emitted, s.delivered())
				s.assertNoProblems(t)
				for _, w := range []*world{one, two} {
					require.Empty(t, w.broadcaster.Stats().Dropped)
				}
			})
		})
	}
}

// Occurrences go on coming in while what others have counted is added.
func TestLeadersInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, one, two := leaders(t)
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
