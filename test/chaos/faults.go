package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/faultproxy"
	"github.com/eventseries/eventseries/test/internal/apiserver"
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
	name := controllerUser.Name
	_, bindingErr := f.clients.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}, metav1.CreateOptions{})
	_, levelErr := f.clients.FlowcontrolV1().PriorityLevelConfigurations().Create(ctx, apiserver.PriorityLevel(name, 0), metav1.CreateOptions{})
	return errors.Join(bindingErr, levelErr)
}

// beginPushBack creates the flow schema. It gives up at end, since the server may be
// unavailable.
func (f *faults) beginPushBack(ctx context.Context, end time.Time) {
	schema := apiserver.FlowSchema(controllerUser.Name, flowcontrolv1.Subject{
		Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: controllerUser.Name},
	})
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

type kind string

const (
	killServer  kind = "server killed"
	pauseServer kind = "server paused"
	slowEtcd    kind = "etcd slow"
	holdEtcd    kind = "etcd cut off"
	resetEtcd   kind = "etcd reset"
	// pushBack is optional.
	pushBack kind = "server pushes back"

	// Faults of the network between the server and the emitters.
	netRefuse  kind = "network refuses"
	netReset   kind = "network resets"
	netCut     kind = "network cuts answers short"
	netHold    kind = "network holds all"
	netAnswers kind = "network holds answers"
	netSlow    kind = "network slow"

	// Ends of an emitter process. Another process follows.
	stopEmitter  kind = "emitter stopped"
	hurryEmitter kind = "emitter stopped in a hurry"
	killEmitter  kind = "emitter killed"
	// flushEmitter ends the last process. Schedules do not contain it.
	flushEmitter kind = "emitter flushed and stopped"
)

var (
	serverKinds  = []kind{killServer, pauseServer, slowEtcd, holdEtcd, resetEtcd}
	networkKinds = []kind{netRefuse, netReset, netCut, netHold, netAnswers, netSlow}
	// Kills are the hardest case, so they are twice as frequent.
	emitterKinds = []kind{stopEmitter, killEmitter, hurryEmitter, killEmitter}
)

type step struct {
	// at is the start since the begin of the run. If the previous step has not ended,
	// the step starts after it.
	at time.Duration
	// lasts is the duration of a fault, or the time until the next process.
	lasts time.Duration
	kind  kind
	// fault is the fault of a proxy, if the kind has one.
	fault faultproxy.Fault
}

func (s step) String() string {
	line := fmt.Sprintf("%7.1fs %-26s for %.1fs", s.at.Seconds(), s.kind, s.lasts.Seconds())
	if s.fault != (faultproxy.Fault{}) {
		line += fmt.Sprintf(" %+v", s.fault)
	}
	return line
}

// schedule contains the steps of a run. Steps in a list are sequential, lists are
// concurrent.
type schedule struct {
	server   []step // the server and its etcd
	network  []step
	pushBack []step
	emitters [][]step
}

// newSchedule returns the schedule of a seed. A longer schedule starts with the steps
// of a shorter one.
func newSchedule(seed uint64, emitters int, duration time.Duration) schedule {
	s := schedule{
		server:  plan(rand.New(rand.NewPCG(seed, 1)), duration, serverKinds, serverPace),
		network: plan(rand.New(rand.NewPCG(seed, 2)), duration, networkKinds, networkPace),
	}
	for i := range emitters {
		s.emitters = append(s.emitters, plan(rand.New(rand.NewPCG(seed, uint64(10+i))), duration, emitterKinds, emitterPace))
	}
	return s
}

func (s schedule) withPushBacks(seed uint64, duration time.Duration) schedule {
	s.pushBack = plan(rand.New(rand.NewPCG(seed, 3)), duration, []kind{pushBack}, pushBackPace)
	return s
}

type span struct{ from, to float64 }

func (s span) draw(rng *rand.Rand) time.Duration {
	from, to := time.Duration(s.from*float64(time.Second)), time.Duration(s.to*float64(time.Second))
	return from + time.Duration(rng.Int64N(int64(to-from))).Round(time.Millisecond)
}

type pace struct {
	// brisk is the pause between steps until each kind has occurred, calm the pause
	// after that. Flushes succeed during calm pauses. Without them, the bounds of killed
	// processes would be wide.
	brisk, calm span
	lasts       span
	// long is the duration of every eighth step on average. Zero means none.
	long time.Duration
}

var (
	serverPace  = pace{brisk: span{1, 7}, calm: span{3, 20}, lasts: span{0.5, 5}}
	networkPace = pace{brisk: span{1, 6}, calm: span{3, 18}, lasts: span{0.5, 6}}
	// Pauses of the recorder grow, so some push-backs must outlast several pauses.
	pushBackPace = pace{brisk: span{10, 20}, calm: span{20, 40}, lasts: span{3, 25}}
	// After a long absence, the next process finds only series that have finished.
	emitterPace = pace{brisk: span{4, 16}, calm: span{8, 40}, lasts: span{0, 4}, long: 2 * (heartbeatInterval + finishAfter)}
)

// plan returns a list of steps. Kinds come in random order, and each kind comes once
// before any kind comes again.
func plan(rng *rand.Rand, duration time.Duration, kinds []kind, p pace) []step {
	var steps []step
	var deck []kind
	gap := p.brisk
	for now := time.Duration(0); ; {
		if len(deck) == 0 {
			if len(steps) > 0 {
				gap = p.calm
			}
			deck = slices.Clone(kinds)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		s := step{at: now + gap.draw(rng), lasts: p.lasts.draw(rng), kind: deck[0]}
		deck = deck[1:]
		if rng.IntN(8) == 0 && p.long > 0 {
			s.lasts = p.long
		}
		s.fault = faultOf(s.kind, rng)
		if now = s.at + s.lasts; now > duration {
			return steps
		}
		steps = append(steps, s)
	}
}

func faultOf(k kind, rng *rand.Rand) faultproxy.Fault {
	switch k {
	case netRefuse, resetEtcd:
		return faultproxy.Fault{Refuse: true}
	case netCut:
		// From the middle of the TLS handshake to a few answers later.
		return faultproxy.Fault{ResetAfter: 100 + rng.IntN(8000)}
	case netHold, holdEtcd:
		return faultproxy.Fault{HoldRequests: true, HoldAnswers: true}
	case netAnswers:
		return faultproxy.Fault{HoldAnswers: true}
	case netSlow, slowEtcd:
		return faultproxy.Fault{Delay: time.Duration(20+rng.IntN(400)) * time.Millisecond}
	default:
		return faultproxy.Fault{}
	}
}

func (s schedule) String() string {
	type line struct {
		step
		suffix string
	}
	var all []line
	for i, steps := range s.lists() {
		suffix := ""
		if emitter := i - 3; emitter >= 0 {
			suffix = fmt.Sprintf(", emitter %d", emitter)
		}
		for _, s := range steps {
			all = append(all, line{s, suffix})
		}
	}
	slices.SortStableFunc(all, func(a, b line) int { return int(a.at - b.at) })
	var text strings.Builder
	for _, l := range all {
		fmt.Fprintf(&text, "%v%s\n", l.step, l.suffix)
	}
	return text.String()
}

// lists returns all lists of steps, those of the emitters last.
func (s schedule) lists() [][]step {
	return slices.Concat([][]step{s.server, s.network, s.pushBack}, s.emitters)
}
