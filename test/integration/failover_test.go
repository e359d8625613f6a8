package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestFailOver has two replicas of a controller compete for a Lease. The leader
// is killed in a hot loop; the other takes over and goes on in the same Event.
// The replicas have the roles of docs/rbac and no others.
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
			untilWritten(t, history, "replica-1", 3)
			leader.kill(t)
			killed := time.Now()
			require.Equal(t, "leading", other.await(t))
			t.Logf("the other leads %v after the kill", time.Since(killed).Round(time.Millisecond))
			untilWritten(t, history, "replica-2", 3)
			emitted := requireCount(t, other.do(t, "stop"))
			other.do(t, "flush")
			other.do(t, "shutdown")

			event := eventAbout(t, clients, namespace, replicaPod(namespace).UID)
			assert.Equal(t, "replica-1", event.ReportingInstance, "that is immutable")
			assert.Equal(t, "Ongoing", state(event), "there may be a third")
			var known int // to the server when the leader died
			apiserver.Eventually(t, patience, func(context.Context) error {
				all := loops(history)
				if last := occurrences(all[len(all)-1].event); last != occurrences(event) {
					return fmt.Errorf("the watch has come to %d of %d", last, occurrences(event))
				}
				return nil
			})
			all := loops(history)
			for i, c := range all {
				assert.Equal(t, event.UID, c.event.UID)
				assert.Equal(t, event.Name, c.event.Name)
				assert.Equal(t, i == 0, c.kind == watch.Added, "%v of %s", c.kind, c.event.Name)
				if c.event.Annotations[replicaAnnotation] == "replica-1" {
					known = occurrences(c.event)
				}
			}
			assert.Equal(t, known+emitted, occurrences(event), "%d known, %d emitted by the other", known, emitted)
			requireNothingGoesBack(t, history)
			t.Logf("%d states of one Event, the last of which counts %d + %d", len(all), known, emitted)

			requireElectionEvents(t, namespace, "replica-1", "replica-2")
		})
	}
}

// loops returns what has become of the Event about the replicas' loop.
func loops(h *history) (changes []change) {
	for _, c := range h.all() {
		if c.event.Reason == "Looped" {
			changes = append(changes, c)
		}
	}
	return changes
}

// untilWritten waits until the server has told of that many writes of a replica.
func untilWritten(t *testing.T, h *history, replica string, writes int) {
	t.Helper()
	apiserver.Eventually(t, patience, func(context.Context) error {
		n := 0
		for _, c := range loops(h) {
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

// requireElectionEvents waits for what client-go's leader election has to say,
// which it says in the core group.
func requireElectionEvents(t *testing.T, namespace string, leaders ...string) {
	t.Helper()
	apiserver.Eventually(t, patience, func(ctx context.Context) error {
		list, err := apiserver.Clientset(t).CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=LeaderElection"})
		if err != nil {
			return err
		}
		var messages []string
		for _, event := range list.Items {
			messages = append(messages, event.Message)
		}
		for _, leader := range leaders {
			if all := strings.Join(messages, "; "); !strings.Contains(all, leader+" became leader") {
				return fmt.Errorf("no word of %s: %s", leader, all)
			}
		}
		return nil
	})
}
