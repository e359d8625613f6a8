package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// restartTime is the time between the end of a process and the start of the next.
const restartTime = 10 * time.Second

// way is how a process finds the series of the one before it.
type way struct {
	scope  events.Scope
	second string // the name of the second process; the first is replica-1
	list   bool   // whether it may list
}

var ways = map[string]way{
	"by name":          {events.SameInstance, "replica-1", false},
	"by list":          {events.SameInstance, "replica-1", true},
	"new pod, by name": {events.SameController, "replica-2", false},
	"new pod, by list": {events.SameController, "replica-2", true},
}

// succession is two processes, one after the other.
type succession struct {
	way
	namespace string
	account   account
	clients   *kubernetes.Clientset
	history   *history
}

// eachWay runs a test for all ways in parallel.
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
			s.history.requireCountsGrow(t)
		})
	}
}

// first starts the first process. Its clock has the real time but stands still.
func (s *succession) first(t *testing.T) *replica {
	t.Helper()
	return s.start(t, "replica-1", time.Now())
}

// next starts the process after one that has ended. It returns when the process
// has restored the series from its list, or when the server has denied the list:
// an earlier occurrence would find the series by name in any case.
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

// requireFound fails the test unless the process found the series in the way
// under test.
func (s *succession) requireFound(t *testing.T, r *replica) {
	t.Helper()
	adopted, restored := "1", "0"
	if s.list {
		adopted, restored = "0", "1"
	}
	require.Equal(t, adopted, r.do(t, "adopted"))
	require.Equal(t, restored, r.do(t, "restored"))
}

// event waits until there is exactly one Event.
func (s *succession) event(t *testing.T) *eventsv1.Event {
	t.Helper()
	return eventAbout(t, s.clients, s.namespace, replicaPod(s.namespace).UID)
}

// inOrder returns all Events in the order of their first occurrences.
func (s *succession) inOrder(ctx context.Context) ([]eventsv1.Event, error) {
	found, err := eventsAbout(ctx, s.clients, s.namespace, replicaPod(s.namespace).UID)
	slices.SortFunc(found, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	return found, err
}

// awaitFinished steps the clock of a process until there are n Events, all
// Finished. It returns them in the order of their first occurrences.
func (s *succession) awaitFinished(t *testing.T, r *replica, n int) []eventsv1.Event {
	t.Helper()
	var found []eventsv1.Event
	r.eventually(t, func(ctx context.Context) (err error) {
		if found, err = s.inOrder(ctx); err != nil {
			return err
		}
		if len(found) != n {
			return fmt.Errorf("%d Events", len(found))
		}
		for i := range found {
			if err := isFinished(&found[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return found
}

// newest returns the count of the newest series on the server.
func (s *succession) newest(t *testing.T) int {
	t.Helper()
	found, err := s.inOrder(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return occurrences(&found[len(found)-1])
}

func TestProcessContinuesTheSeries(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *succession) {
		first := s.first(t)
		first.do(t, "emit 10")
		first.do(t, "shutdown")
		assert.Equal(t, "Ongoing", state(s.event(t)))

		second := s.next(t, first, restartTime)
		second.do(t, "emit 10")
		second.do(t, "flush")
		s.requireFound(t, second)
		event := s.awaitFinished(t, second, 1)[0]
		assert.Equal(t, 20, occurrences(&event))
		assert.Equal(t, "replica-1", event.ReportingInstance, "it is immutable")
	})
}

// TestProcessFindsTheSuccessor finishes a series. It starts again 20 minutes
// later with another name, and goes on for two hours before the process ends.
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
				s.awaitFinished(t, first, 1)
				if rest := 26*time.Minute - first.now.Sub(begin); rest > 0 {
					first.do(t, "wait %v", rest)
				}
				first.do(t, "emit 2")
				first.do(t, "flush")
				for range 4 {
					known := s.newest(t)
					first.do(t, "loop 30")
					first.eventually(t, func(context.Context) error {
						first.do(t, "emit 1") // or else the series would finish
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
				found := s.awaitFinished(t, second, 2)
				assert.Equal(t, 10, occurrences(&found[0]))
				assert.Equal(t, known+10, occurrences(&found[1]))
				assert.Contains(t, found[0].Annotations["eventseries.dev/successor"], found[1].Name+" ")
			})
		})
	}
}

// TestProcessFinishesStaleSeries kills a process whose series does not occur
// again. The next process finishes the series if it may list, and otherwise never
// learns of it.
func TestProcessFinishesStaleSeries(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Duration{
		"not yet stale": time.Minute,
		"stale":         40 * time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, s *succession) {
				first := s.first(t)
				first.do(t, "emit 10")
				first.do(t, "flush")
				first.kill(t)
				left := s.event(t)
				require.Equal(t, "Ongoing", state(left))

				second := s.next(t, first, later)
				if s.list {
					event := s.awaitFinished(t, second, 1)[0]
					assert.Equal(t, 10, occurrences(&event))
					assert.Equal(t, left.Series.LastObservedTime, event.Series.LastObservedTime, "it has not occurred since")
					assert.Equal(t, "1", second.do(t, "restored"))
					return
				}
				for range 60 {
					second.do(t, "wait %v", step)
				}
				second.do(t, "flush")
				assert.Equal(t, "Ongoing", state(s.event(t)))
			})
		})
	}
}

// TestFailOver has two replicas with the roles of docs/rbac compete for a Lease.
// It kills the leader in a hot loop. The new leader continues the same Event.
func TestFailOver(t *testing.T) {
	t.Parallel()
	for name, roles := range map[string][][]string{
		"may write":          {mayWrite, mayLead},
		"may write and list": {mayWrite, mayList, mayLead},
		"in one namespace":   {mayWriteAndListInOne, mayLead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
			a := accountIn(namespace)
			a.grant(t, clients, roles...)
			history := watchEvents(t, clients, namespace)
			start := func(name string) *replica {
				return startReplica(t, replicaSpec{
					User: a.user(), Namespace: namespace, Name: name,
					Scope: events.SameController, Lease: "backup-controller",
				})
			}
			leader := start("replica-1")
			require.Equal(t, "leading", leader.await(t))
			other := start("replica-2")
			history.awaitWritesOf(t, "replica-1", 3)
			leader.kill(t)
			killed := time.Now()
			require.Equal(t, "leading", other.await(t))
			t.Logf("the new leader leads %v after the kill", time.Since(killed).Round(time.Millisecond))
			history.awaitWritesOf(t, "replica-2", 3)
			emitted, err := strconv.Atoi(other.do(t, "stop"))
			require.NoError(t, err)
			other.do(t, "flush")
			other.do(t, "shutdown")

			event := eventAbout(t, clients, namespace, replicaPod(namespace).UID)
			assert.Equal(t, "replica-1", event.ReportingInstance, "it is immutable")
			assert.Equal(t, "Ongoing", state(event), "there may be a third replica")
			history.requireSeen(t, event.Name, occurrences(event))
			var known int // to the server when the leader died
			for i, c := range history.loops() {
				assert.Equal(t, event.UID, c.event.UID)
				assert.Equal(t, event.Name, c.event.Name)
				assert.Equal(t, i == 0, c.kind == watch.Added, "%v of %s", c.kind, c.event.Name)
				if c.event.Annotations[replicaAnnotation] == "replica-1" {
					known = occurrences(c.event)
				}
			}
			assert.Equal(t, known+emitted, occurrences(event), "%d known, %d emitted by the new leader", known, emitted)
			history.requireCountsGrow(t)
			requireElectionEvents(t, clients, namespace, "replica-1", "replica-2")
		})
	}
}

// loops returns the changes of the Event about the loop of the replicas.
func (h *history) loops() (changes []change) {
	for _, c := range h.all() {
		if c.event.Reason == "Looped" {
			changes = append(changes, c)
		}
	}
	return changes
}

// awaitWritesOf waits until the watch has returned that many writes of a replica.
func (h *history) awaitWritesOf(t *testing.T, replica string, writes int) {
	t.Helper()
	eventually(t, func(context.Context) error {
		n := 0
		for _, c := range h.loops() {
			if c.event.Annotations[replicaAnnotation] == replica {
				n++
			}
		}
		if n < writes {
			return fmt.Errorf("%d writes of %s", n, replica)
		}
		return nil
	})
}

// requireElectionEvents waits for the events of client-go's leader election in
// core/v1.
func requireElectionEvents(t *testing.T, clients kubernetes.Interface, namespace string, leaders ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		list, err := clients.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=LeaderElection"})
		if err != nil {
			return err
		}
		var messages []string
		for _, event := range list.Items {
			messages = append(messages, event.Message)
		}
		for _, leader := range leaders {
			if all := strings.Join(messages, "; "); !strings.Contains(all, leader+" became leader") {
				return fmt.Errorf("no event of %s: %s", leader, all)
			}
		}
		return nil
	})
}

// TestDeposedLeaderShutsDown has a leader that lost its Lease shut down while its
// successor continues the same Event. The Event counts the occurrences of both.
func TestDeposedLeaderShutsDown(t *testing.T) {
	t.Parallel()
	config, namespace := apiserver.Config(t), apiserver.Namespace(t)
	opts := events.Options{Scope: events.SameController}
	deposed, leader := startRecording(t, config, opts), startRecording(t, config, opts)
	history := watchEvents(t, leader.clients, namespace)
	pod := podIn(namespace, "looping")
	requireCount := func(want int) {
		t.Helper()
		assert.Equal(t, want, occurrences(eventAbout(t, leader.clients, namespace, pod.UID)))
	}

	emit(deposed.recorder(), pod, 10)
	deposed.flush(t)
	emit(deposed.recorder(), pod, 5)
	emit(leader.recorder(), pod, 50)
	leader.flush(t)
	requireCount(60)
	deposed.Shutdown()
	requireCount(65)
	emit(leader.recorder(), pod, 1)
	leader.flush(t)
	requireCount(66)
	assert.Positive(t, requestsOf(leader.Stats(), "flush", "changed"))
	assert.EqualValues(t, 1, leader.Stats().Adopted)
	history.requireCountsGrow(t)
}
