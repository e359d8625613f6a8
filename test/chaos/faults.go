package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/faultproxy"
)

const (
	// startTimeout bounds a start of the control plane. On a busy machine it may fail,
	// so there are startAttempts.
	startTimeout  = 3 * time.Minute
	startAttempts = 3
	// resetInterval is the interval of resets while the network resets connections.
	resetInterval = 300 * time.Millisecond
)

type faults struct {
	server *controlplane.Server
	// network is the proxy between the emitters and the server. etcd is the proxy
	// between the server and its etcd.
	network, etcd *faultproxy.Proxy
	clients       kubernetes.Interface // not through network
	log           func(format string, args ...any)
}

func (f *faults) run(ctx context.Context, begin time.Time, steps []step) error {
	for _, s := range steps {
		if !until(ctx, begin.Add(s.at)) {
			return context.Cause(ctx)
		}
		if err := f.inject(ctx, s); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

func (f *faults) inject(ctx context.Context, s step) error {
	end := time.Now().Add(s.lasts)
	switch s.kind {
	case killServer:
		if err := f.server.Kill(); err != nil {
			return err
		}
		until(ctx, end)
		return f.restart(ctx)
	case pauseServer:
		if err := f.server.Pause(); err != nil {
			return err
		}
		until(ctx, end)
		return f.server.Resume()
	case pushBack:
		f.beginPushBack(ctx, end)
		until(ctx, end)
		return f.endPushBack(ctx)
	case slowEtcd, holdEtcd, resetEtcd:
		f.injectInto(ctx, f.etcd, s, end)
	default:
		f.injectInto(ctx, f.network, s, end)
	}
	return nil
}

func (f *faults) injectInto(ctx context.Context, proxy *faultproxy.Proxy, s step, end time.Time) {
	proxy.Set(s.fault)
	defer proxy.Set(faultproxy.Fault{})
	switch s.kind {
	case netRefuse, resetEtcd:
		proxy.Reset() // existing connections
	case netReset:
		for time.Until(end) > resetInterval && until(ctx, time.Now().Add(resetInterval)) {
			proxy.Reset()
		}
	default:
	}
	until(ctx, end)
}

func (f *faults) restart(ctx context.Context) (err error) {
	for range startAttempts {
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		err = f.server.Restart(starting)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		f.log("the server did not start, retrying: %v", err)
	}
	return err
}

// controllerUser is the user of the emitters if the server rejects requests, since API
// Priority and Fairness exempts administrators.
var controllerUser = controlplane.User{Name: "chaos-controller", Token: "chaos-controller-token"}

// preparePushBack creates a priority level without seats, and grants controllerUser all
// permissions. A push-back is a flow schema that selects the level.
func (f *faults) preparePushBack(ctx context.Context) error {
	meta := metav1.ObjectMeta{Name: controllerUser.Name}
	_, bindingErr := f.clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: controllerUser.Name}},
	}, metav1.CreateOptions{})
	_, levelErr := f.clients.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: meta,
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
	return errors.Join(bindingErr, levelErr)
}

// beginPushBack creates the flow schema. It gives up at end, since the server may be
// unavailable.
func (f *faults) beginPushBack(ctx context.Context, end time.Time) {
	all := []string{flowcontrolv1.APIGroupAll} // "*", which matches other fields too
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
		_, err := f.clients.FlowcontrolV1().FlowSchemas().Create(asking, schema, metav1.CreateOptions{})
		cancel()
		if err == nil || apierrors.IsAlreadyExists(err) || !until(ctx, time.Now().Add(tick)) {
			return
		}
	}
}

// endPushBack deletes the flow schema. It retries until ctx is done.
func (f *faults) endPushBack(ctx context.Context) error {
	for {
		asking, cancel := context.WithTimeout(ctx, requestTimeout)
		err := f.clients.FlowcontrolV1().FlowSchemas().Delete(asking, controllerUser.Name, metav1.DeleteOptions{})
		cancel()
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !until(ctx, time.Now().Add(tick)) {
			return fmt.Errorf("chaos: push-back does not end: %w", err)
		}
	}
}
