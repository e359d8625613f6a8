package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// restartTime is how long a process is away before the next one is there.
const restartTime = 10 * time.Second

// way is how a process finds the series of the one before it.
type way struct {
	scope  events.Scope
	second string // the name of the second process; the first is replica-1
	list   bool   // it may list
}

var ways = map[string]way{
	"by name":             {events.SameInstance, "replica-1", false},
	"by listing":          {events.SameInstance, "replica-1", true},
	"new pod, by name":    {events.SameController, "replica-2", false},
	"new pod, by listing": {events.SameController, "replica-2", true},
}

// succession is two processes, one after the other.
type succession struct {
	way
	namespace string
	account   account
	clients   *kubernetes.Clientset
	history   *history
}

// eachWay runs a test for each way, all at the same time.
func eachWay(t *testing.T, test func(t *testing.T, s *succession)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(ways)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &succession{way: ways[name], namespace: apiserver.Namespace(t), clients: apiserver.Clientset(t)}
			s.account = accountIn(s.namespace)
			s.account.grant(t, s.clients, mayWrite)
			if s.list {
				s.account.grant(t, s.clients, mayList)
			}
			s.history = watchEvents(t, s.clients, s.namespace)
			test(t, s)
			requireNothingGoesBack(t, s.history)
		})
	}
}

// first starts the first process. Its time is the real one, but stands still.
func (s *succession) first(t *testing.T) *replica {
	t.Helper()
	return s.start(t, "replica-1", time.Now())
}

// next starts the process after the given one, which has ended. It returns when
// that has found the series in its list, or was told that it may not list. What
// occurs before that would find it by its name, whatever is permitted.
func (s *succession) next(t *testing.T, before *replica, later time.Duration) *replica {
	t.Helper()
	r := s.start(t, s.second, before.now.Add(later))
	if s.list {
		r.do(t, "until restored")
	} else {
		r.do(t, "until denied")
	}
	return r
}

func (s *succession) start(t *testing.T, name string, now time.Time) *replica {
	t.Helper()
	return startReplica(t, replicaSpec{User: s.account.user(), Namespace: s.namespace, Name: name, Scope: s.scope, Now: now})
}

// requireFound fails the test unless the series was found the way that it is to
// be.
func (s *succession) requireFound(t *testing.T, r *replica) {
	t.Helper()
	adopted, restored := "1", "0"
	if s.list {
		adopted, restored = "0", "1"
	}
	require.Equal(t, adopted, r.do(t, "adopted"))
	require.Equal(t, restored, r.do(t, "restored"))
}

// untilFinished has the replica's time pass until a number of Events are there,
// all Finished, and returns them in the order of their first occurrences.
func (s *succession) untilFinished(t *testing.T, r *replica, number int) []eventsv1.Event {
	t.Helper()
	var found []eventsv1.Event
	r.eventually(t, func(ctx context.Context) (err error) {
		found, err = eventsAbout(ctx, s.clients, s.namespace, replicaPod(s.namespace).UID)
		if err != nil {
			return err
		}
		if len(found) != number {
			return fmt.Errorf("%d Events", len(found))
		}
		for i := range found {
			if state(&found[i]) != "Finished" {
				return fmt.Errorf("%s is %q", found[i].Name, state(&found[i]))
			}
		}
		return nil
	})
	slices.SortFunc(found, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return found
}

// Ten times, a restart, and ten times more.
func TestProcessIsStartedAgain(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *succession) {
		first := s.first(t)
		first.do(t, "emit 10")
		first.do(t, "shutdown")
		assert.Equal(t, "Ongoing", state(eventAbout(t, s.clients, s.namespace, replicaPod(s.namespace).UID)))

		second := s.next(t, first, restartTime)
		second.do(t, "emit 10")
		second.do(t, "flush")
		s.requireFound(t, second)
		event := s.untilFinished(t, second, 1)[0]
		assert.Equal(t, 20, occurrences(&event))
		assert.Equal(t, "replica-1", event.ReportingInstance, "that is immutable")
	})
}

// A process is killed a minute before its heartbeat, so that all that the server
// knows is 29 minutes old.
func TestProcessIsKilledBeforeItsHeartbeat(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *succession) {
		first := s.first(t)
		first.do(t, "emit 1")
		first.do(t, "flush")
		first.do(t, "emit 1")
		first.do(t, "flush")
		first.do(t, "loop 29")
		first.kill(t)
		assert.Equal(t, 2, occurrences(eventAbout(t, s.clients, s.namespace, replicaPod(s.namespace).UID)), "no heartbeat yet")

		second := s.next(t, first, restartTime)
		second.do(t, "emit 10")
		second.do(t, "flush")
		s.requireFound(t, second)
		event := s.untilFinished(t, second, 1)[0]
		assert.Equal(t, 12, occurrences(&event))
	})
}

// A loop has ended, has come back 20 minutes later and has been going on for two
// hours, under a name of its own.
func TestProcessFindsTheSuccessor(t *testing.T) {
	t.Parallel()
	for ending, end := range map[string]func(t *testing.T, first *replica){
		"shut down": func(t *testing.T, first *replica) { first.do(t, "shutdown") },
		"killed":    func(t *testing.T, first *replica) { first.kill(t) },
	} {
		t.Run(ending, func(t *testing.T) {
			eachWay(t, func(t *testing.T, s *succession) {
				first := s.first(t)
				begin := first.now
				first.do(t, "emit 10")
				first.do(t, "flush")
				s.untilFinished(t, first, 1)
				if rest := 26*time.Minute - first.now.Sub(begin); rest > 0 {
					first.do(t, "wait %v", rest)
				}
				first.do(t, "emit 2")
				first.do(t, "flush")
				for range 4 {
					known := s.newest(t)
					first.do(t, "loop 30")
					first.eventually(t, func(context.Context) error {
						first.do(t, "emit 1") // it goes on, however long that takes
						if n := s.newest(t); n <= known {
							return fmt.Errorf("no heartbeat after %d", n)
						}
						return nil
					})
				}
				end(t, first)
				known := s.newest(t)

				second := s.next(t, first, restartTime)
				second.do(t, "emit 10")
				second.do(t, "flush")
				s.requireFound(t, second)
				found := s.untilFinished(t, second, 2)
				assert.Equal(t, 10, occurrences(&found[0]))
				assert.Equal(t, known+10, occurrences(&found[1]))
				assert.Contains(t, found[0].Annotations["eventseries.dev/successor"], found[1].Name+" ")
			})
		})
	}
}

// newest returns the count that the server knows of the latest series.
func (s *succession) newest(t *testing.T) int {
	t.Helper()
	found, err := eventsAbout(t.Context(), s.clients, s.namespace, replicaPod(s.namespace).UID)
	require.NoError(t, err)
	require.NotEmpty(t, found)
	latest := slices.MaxFunc(found, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return occurrences(&latest)
}

// A process has died, and what it reported does not happen again. The next one
// closes it, if it may list; it never hears of it otherwise.
func TestProcessLeavesWhatNobodyGoesOnWith(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{
		"that may still be alive": time.Minute,
		"that is dead":            40 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, s *succession) {
				first := s.first(t)
				first.do(t, "emit 10")
				first.do(t, "flush")
				first.kill(t)
				left := eventAbout(t, s.clients, s.namespace, replicaPod(s.namespace).UID)
				require.Equal(t, "Ongoing", state(left))

				second := s.next(t, first, later)
				if s.list {
					event := s.untilFinished(t, second, 1)[0]
					assert.Equal(t, 10, occurrences(&event))
					assert.Equal(t, left.Series.LastObservedTime, event.Series.LastObservedTime, "it has not occurred since")
					assert.Equal(t, "1", second.do(t, "restored"))
					return
				}
				for range 60 {
					second.do(t, "wait %v", step)
				}
				second.do(t, "flush")
				assert.Equal(t, "Ongoing", state(eventAbout(t, s.clients, s.namespace, replicaPod(s.namespace).UID)))
			})
		})
	}
}

// requireCount parses a number that a replica has answered.
func requireCount(t *testing.T, answer string) int {
	t.Helper()
	n, err := strconv.Atoi(answer)
	require.NoError(t, err)
	return n
}
