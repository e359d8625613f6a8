package controllerruntime

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/eventseries/eventseries/compat"
	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// Leader election calls itself by the identity of a process, for which there would
// be a new controller at each start.
func TestEventsOfLeaderElection(t *testing.T) {
	w := newWorld(t)
	hostname, err := os.Hostname()
	require.NoError(t, err)
	for range 2 { // terms of different processes
		broadcaster := w.legacyBroadcaster()
		mgr := w.manager(w.electing(w.withLegacy(ctrl.Options{}, broadcaster.Events())))
		stop := w.run(mgr)
		w.waitFor("the election", mgr.Elected())
		stop()
		broadcaster.Shutdown()
		assert.Empty(t, broadcaster.Events().Stats().Dropped)
	}

	terms := make(map[string][]string) // what each process said
	for _, event := range w.written(compat.LeaderElection) {
		process, said, ok := strings.Cut(event.Note, " ")
		require.True(t, ok, event.Note)
		assert.True(t, strings.HasPrefix(process, hostname+"_"), process)
		assert.Equal(t, "Lease", event.Regarding.Kind)
		assert.Equal(t, "leader", event.Regarding.Name)
		assert.Equal(t, "LeaderElection", event.Reason)
		assert.Nil(t, event.Series)
		terms[process] = append(terms[process], said)
	}
	require.Len(t, terms, 2)
	for _, said := range terms {
		assert.ElementsMatch(t, []string{"became leader", "stopped leading"}, said)
	}
}

// Two replicas of a controller: the second one takes over the series of the first,
// and writes nothing before it leads.
func TestSecondLeaderGoesOnWithTheSeries(t *testing.T) {
	const name, each = "example.com/replicated", 100
	for title, election := range map[string]bool{
		"events of leader election go elsewhere": false,
		"events of leader election as well":      true,
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t)
			object := w.object("one")

			type replica struct {
				*events.Broadcaster
				elected        <-chan struct{}
				stop           func()
				events, leases func() int64 // requests
			}
			newReplica := func(instance string) *replica {
				config := apiserver.Config(t)
				writes := countRequests(config, "/events")
				broadcaster := events.NewBroadcasterWithOptions(w.sink(config), events.Options{
					Scope:             events.SameController,
					ReportingInstance: instance,
					Namespaces:        []string{w.namespace},
				})
				t.Cleanup(broadcaster.Shutdown)

				opts := w.electing(w.options(ctrl.Options{}))
				if election {
					opts = w.withLegacy(opts, broadcaster)
				}
				config = apiserver.Config(t)
				leases := countRequests(config, "/leases/")
				mgr, err := ctrl.NewManager(config, opts)
				require.NoError(t, err)
				require.NoError(t, mgr.Add(broadcaster))
				return &replica{
					Broadcaster: broadcaster, elected: mgr.Elected(), stop: w.run(mgr),
					events: writes.Load, leases: leases.Load,
				}
			}
			emit := func(r *replica) {
				recorder := r.NewRecorder(nil, name)
				for range each {
					recorder.Eventf(reference(object), nil, corev1.EventTypeWarning, "Failed", "Trying", "it failed")
				}
			}

			first := newReplica("first")
			w.waitFor("the first election", first.elected)
			second := newReplica("second")
			emit(second) // it waits
			emit(first)
			flush(t, first.Broadcaster)
			apiserver.Eventually(t, patience, func(context.Context) error {
				if n := second.leases(); n < 5 {
					return fmt.Errorf("the second has looked at the lease %d times", n)
				}
				return nil
			})
			assert.Zero(t, second.events(), "it does not lead")
			assert.Equal(t, map[string]int{"it failed": each}, w.counts(name))

			first.stop()
			first.Shutdown()
			w.waitFor("the second election", second.elected)
			emit(second)
			second.stop()
			second.Shutdown()
			list := w.written(name)
			require.Len(t, list, 1)
			require.NotNil(t, list[0].Series)
			assert.EqualValues(t, 3*each, list[0].Series.Count)
			assert.Equal(t, "first", list[0].ReportingInstance, "the one that began it")

			want := 0
			if election {
				want = 4 // two terms begin and end
			}
			assert.Len(t, w.written(compat.LeaderElection), want)
		})
	}
}

// flush waits until all that was emitted is on the server.
func flush(t *testing.T, broadcaster *events.Broadcaster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, broadcaster.Flush(ctx))
}

// reference is for recorders that have no scheme.
func reference(object *corev1.ConfigMap) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: object.Namespace, Name: object.Name, UID: object.UID,
	}
}
