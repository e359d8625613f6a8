package chaos

import (
	"context"
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/internal/controlplane"
)

// controllerUser is who the emitters are where the server pushes back: it never
// does so with an administrator.
var controllerUser = controlplane.User{Name: "chaos-controller", Token: "chaos-controller-token"}

// pushBacks has the server answer the emitters with 429, as its own priority and
// fairness does: there is a priority level without a seat, and for as long as it
// lasts a flow schema that leads there.
type pushBacks struct {
	clients kubernetes.Interface // not through the proxy
}

// prepare makes the level, and has the controllerUser do what it likes.
func (p *pushBacks) prepare(ctx context.Context) error {
	_, err := p.clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: controllerUser.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: controllerUser.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("chaos: push-back: %w", err)
	}
	_, err = p.clients.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: controllerUser.Name},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
			Type: flowcontrolv1.PriorityLevelEnablementLimited,
			Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
				NominalConcurrencyShares: new(int32(0)),
				LendablePercent:          new(int32(0)),
				BorrowingLimitPercent:    new(int32(0)),
				LimitResponse:            flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("chaos: push-back: %w", err)
	}
	return nil
}

// run does what a schedule says.
func (p *pushBacks) run(ctx context.Context, begin time.Time, steps []step) error {
	for _, s := range steps {
		if !until(ctx, begin.Add(s.at)) {
			return context.Cause(ctx)
		}
		end := time.Now().Add(s.lasts)
		p.begin(ctx, end)
		until(ctx, end)
		if err := p.end(ctx); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

// begin makes the flow schema, if it can until then: the server may be away.
func (p *pushBacks) begin(ctx context.Context, end time.Time) {
	all := []string{flowcontrolv1.APIGroupAll} // "*", as of everything
	schema := &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: controllerUser.Name},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: controllerUser.Name},
			MatchingPrecedence:         100,
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects: []flowcontrolv1.Subject{{
					Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: controllerUser.Name},
				}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{
					{Verbs: all, APIGroups: all, Resources: all, Namespaces: all, ClusterScope: true},
				},
			}},
		},
	}
	for time.Now().Before(end) {
		asking, cancel := context.WithDeadline(ctx, end)
		_, err := p.clients.FlowcontrolV1().FlowSchemas().Create(asking, schema, metav1.CreateOptions{})
		cancel()
		if err == nil || apierrors.IsAlreadyExists(err) || !until(ctx, time.Now().Add(tick)) {
			return
		}
	}
}

// end deletes the flow schema, however long that takes.
func (p *pushBacks) end(ctx context.Context) error {
	for {
		asking, cancel := context.WithTimeout(ctx, requestTimeout)
		err := p.clients.FlowcontrolV1().FlowSchemas().Delete(asking, controllerUser.Name, metav1.DeleteOptions{})
		cancel()
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !until(ctx, time.Now().Add(tick)) {
			return fmt.Errorf("chaos: push-back does not end: %w", err)
		}
	}
}
