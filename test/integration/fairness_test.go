package integration

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestPriorityAndFairnessPushesBack has a recorder share a priority level of one
// seat with somebody who sits on it.
func TestPriorityAndFairnessPushesBack(t *testing.T) {
	t.Parallel()
	const n = 100
	const group = "crowded"
	user := controlplane.User{Name: "controller", Token: "controller-token", Groups: []string{group}}
	neighbour := controlplane.User{Name: "neighbour", Token: "neighbour-token", Groups: []string{group}}
	// Few enough for one share of them to be one seat.
	server := apiserver.Start(t, controlplane.Options{
		Users:     []controlplane.User{user, neighbour},
		ExtraArgs: []string{"--", "--max-requests-inflight=100", "--max-mutating-requests-inflight=100"},
	})
	config := apiserver.ConfigOf(t, server)
	admin := apiserver.ClientsetFor(t, config)
	namespace := apiserver.NamespaceOn(t, admin)
	grant(t, admin, "event-writer", []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}})
	schema := createLevelOfOneSeat(t, admin, group)
	eventsURL := "/apis/events.k8s.io/v1/namespaces/" + namespace + "/events"
	prober := newProbe(t, apiserver.ConfigAs(config, user), eventsURL)
	prober.wait(t, http.StatusNotFound, func(header http.Header) error {
		if uid := header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID); uid != string(schema.UID) {
			return fmt.Errorf("flow schema %q, not %q", uid, schema.UID)
		}
		return nil
	})
	release := holdSeats(t, apiserver.ConfigAs(config, neighbour), eventsURL, 1)

	own := apiserver.ConfigAs(config, user)
	log := logExchanges(own)
	r := newRecording(t, own, events.Options{})
	r.clients = admin
	r.start(t)
	recorder := r.recorder()
	sent := newTally(namespace, recorder)
	for i := range n {
		sent.occur(i, 1+i%3)
	}
	waitForPause(t, r)
	for i := range n { // it goes on
		sent.occur(i, 1)
	}
	assert.Empty(t, r.written(t), "nothing has come through")
	release()
	widenLevel(t, admin, schema.Name)

	r.flush(t)
	requirePushedBack(t, r)
	for _, x := range log.requirePause(t) {
		assert.NotEmpty(t, x.retryAfter, "the server says when to come back")
	}
	requireCounts(t, r, namespace, sent.counts)
	r.requireAccounted(t, sent.emitted)
}

// createLevelOfOneSeat creates a priority level of one seat that rejects what
// finds no place, and sends all requests of a group there. Both have the name of
// the group.
func createLevelOfOneSeat(t *testing.T, admin kubernetes.Interface, group string) *flowcontrolv1.FlowSchema {
	t.Helper()
	_, err := admin.FlowcontrolV1().PriorityLevelConfigurations().Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(1)),
				LendablePercent:          new(int32(0)),
				BorrowingLimitPercent:    new(int32(0)),
				LimitResponse:            flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	all := []string{flowcontrolv1.APIGroupAll} // "*", as of everything
	schema, err := admin.FlowcontrolV1().FlowSchemas().Create(t.Context(), &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: group},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: group},
			MatchingPrecedence:         100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: group}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{
					{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true},
				},
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return schema
}

// widenLevel gives a priority level seats for all workers of a recorder: with
// one seat they would push each other aside for ever.
func widenLevel(t *testing.T, admin kubernetes.Interface, name string) {
	t.Helper()
	_, err := admin.FlowcontrolV1().PriorityLevelConfigurations().Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"limited":{"nominalConcurrencyShares":100}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}
