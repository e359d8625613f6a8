package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

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

type kind string

const (
	killServer  kind = "server and etcd killed"
	pauseServer kind = "server and etcd paused"
	slowEtcd    kind = "etcd slow"
	holdEtcd    kind = "etcd cut off"
	resetEtcd   kind = "etcd reset"

	// Faults of an API server beside which another one serves.
	killSecond  kind = "second API server killed"
	pauseSecond kind = "second API server paused"

	// Faults of the network between the servers and the emitters.
	netRefuse  kind = "network refuses"
	netReset   kind = "network resets"
	netCut     kind = "network cuts answers short"
	netHold    kind = "network holds all"
	netAnswers kind = "network holds answers"
	netSlow    kind = "network slow"

	// What the server does not permit or cannot handle, except for pushBack only in
	// deniedNamespace.
	pushBack    kind = "server pushes back"
	denyAll     kind = "policy denies a namespace"
	denyCreates kind = "quota is full"
	failWebhook kind = "webhook fails"

	// Faults of a load balancer; see balancer.
	loseCreates kind = "answers of creates lost"
	answerPages kind = "load balancer answers pages"

	// Ends of an emitter process. Another process follows.
	stopEmitter  kind = "emitter stopped"
	hurryEmitter kind = "emitter stopped in a hurry"
	killEmitter  kind = "emitter killed"
	// overlapEmitter stops the process after the next one has started, like a leader
	// that has lost its lease.
	overlapEmitter kind = "two leaders at once"
	// flushEmitter ends the last process. Schedules do not contain it.
	flushEmitter kind = "emitter flushed and stopped"
	// shiftClock lasts as long as a process.
	shiftClock kind = "clock off by minutes"
)

// track is a list of faults, of which one is active at a time. Tracks are concurrent.
type track struct {
	kinds []kind
	pace
}

var tracks = []track{
	{
		[]kind{killServer, pauseServer, slowEtcd, holdEtcd, resetEtcd, killSecond, pauseSecond},
		pace{brisk: span{1, 7}, calm: span{3, 20}, lasts: span{0.5, 5}},
	},
	{
		[]kind{netRefuse, netReset, netCut, netHold, netAnswers, netSlow},
		pace{brisk: span{1, 6}, calm: span{3, 18}, lasts: span{0.5, 6}},
	},
	{
		// The server needs a second to notice a policy. Pauses of the recorder grow, so
		// some push-backs must outlast several pauses.
		[]kind{pushBack, denyAll, denyCreates, failWebhook},
		pace{brisk: span{2, 6}, calm: span{10, 30}, lasts: span{3, 8}, long: 25 * time.Second},
	},
	{
		[]kind{loseCreates, answerPages},
		pace{brisk: span{3, 12}, calm: span{5, 25}, lasts: span{1, 6}},
	},
}

// emitterTrack is the track of an emitter. Only processes that continue the series of
// their controller may overlap.
func emitterTrack(emitter int) track {
	t := track{
		// Kills are the hardest case, so they are twice as frequent.
		[]kind{stopEmitter, killEmitter, hurryEmitter, killEmitter},
		// After a long absence, the next process finds only series that have finished.
		pace{brisk: span{4, 16}, calm: span{8, 40}, lasts: span{0, 4}, long: 2 * (heartbeatInterval + finishAfter)},
	}
	if sharesSeries(emitter) {
		t.kinds = append(t.kinds, overlapEmitter)
	}
	return t
}

// faults injects faults. It is safe for concurrent use.
type faults struct {
	// server has the etcd of both.
	server, second *controlplane.Server
	// networks are the proxies between the emitters and each server. etcd is the proxy
	// between the servers and their etcd.
	networks []*faultproxy.Proxy
	etcd     *faultproxy.Proxy
	clients  kubernetes.Interface // of server, not through networks
	balancer string               // the file that balancers read
	upgrade  func()               // called before each restart of server; nil if there is nothing to do
	log      func(format string, args ...any)

	mu    sync.Mutex
	tried []trial
}

// trial is a fault that was injected.
type trial struct {
	kind     kind
	emitter  int // allEmitters, or the only one that it affected
	from, to time.Time
}

const allEmitters = -1

func (f *faults) note(k kind, emitter int, from time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tried = append(f.tried, trial{k, emitter, from, time.Now()})
}

func (f *faults) run(ctx context.Context, begin time.Time, steps []step) error {
	effects := f.effects()
	for _, s := range steps {
		if !until(ctx, begin.Add(s.at)) {
			return context.Cause(ctx)
		}
		lasting, cancel := context.WithTimeout(ctx, s.lasts)
		began := time.Now()
		err := effects[s.kind].do(lasting, s)
		if err == nil {
			<-lasting.Done()
			err = effects[s.kind].undo(ctx, s)
		}
		cancel()
		if err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		f.note(s.kind, allEmitters, began)
	}
	return nil
}

// effect begins and ends a fault. The context of do ends with the fault.
type effect struct {
	do, undo func(context.Context, step) error
}

func (f *faults) effects() map[kind]effect {
	proxied := func(proxies ...*faultproxy.Proxy) effect {
		return effect{
			do: func(_ context.Context, s step) error {
				for _, proxy := range proxies {
					proxy.Set(s.fault)
					if s.fault.Refuse {
						proxy.Reset() // existing connections
					}
				}
				return nil
			},
			undo: func(context.Context, step) error {
				for _, proxy := range proxies {
					proxy.Set(faultproxy.Fault{})
				}
				return nil
			},
		}
	}
	etcd, network := proxied(f.etcd), proxied(f.networks...)
	resetOften := func(ctx context.Context, _ step) error {
		for until(ctx, time.Now().Add(resetInterval)) {
			for _, proxy := range f.networks {
				proxy.Reset()
			}
		}
		return nil
	}
	balanced := effect{
		do:   func(_ context.Context, s step) error { return f.setBalancer(s.kind) },
		undo: func(context.Context, step) error { return f.setBalancer("") },
	}
	return map[kind]effect{
		killServer:  f.killed(f.server),
		pauseServer: paused(f.server),
		killSecond:  f.killed(f.second),
		pauseSecond: paused(f.second),
		slowEtcd:    etcd,
		holdEtcd:    etcd,
		resetEtcd:   etcd,
		netRefuse:   network,
		netReset:    {resetOften, network.undo},
		netCut:      network,
		netHold:     network,
		netAnswers:  network,
		netSlow:     network,
		pushBack:    f.object(pushBack),
		denyAll:     f.object(denyAll),
		denyCreates: f.object(denyCreates),
		failWebhook: f.object(failWebhook),
		loseCreates: balanced,
		answerPages: balanced,
	}
}

func paused(server *controlplane.Server) effect {
	return effect{
		do:   func(context.Context, step) error { return server.Pause() },
		undo: func(context.Context, step) error { return server.Resume() },
	}
}

func (f *faults) killed(server *controlplane.Server) effect {
	return effect{
		do:   func(context.Context, step) error { return server.Kill() },
		undo: func(ctx context.Context, _ step) error { return f.restart(ctx, server) },
	}
}

// setBalancer tells the balancers of all emitters, which may read the file meanwhile.
func (f *faults) setBalancer(k kind) error {
	next := f.balancer + ".next"
	if err := os.WriteFile(next, []byte(k), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.balancer)
}

// object is an object in testdata, and the path of its resource.
type object struct{ resource, name string }

const (
	flowControl = "flowcontrol.apiserver.k8s.io/v1/"
	admission   = "admissionregistration.k8s.io/v1/"
)

var objects = map[kind]object{
	pushBack:    {flowControl + "flowschemas", "push-back"},
	denyAll:     {admission + "validatingadmissionpolicybindings", "deny-all"},
	denyCreates: {admission + "validatingadmissionpolicybindings", "deny-creates"},
	failWebhook: {admission + "validatingwebhookconfigurations", "fail-webhook"},
}

// prepare creates what the objects refer to, and validates them.
func (f *faults) prepare(ctx context.Context) error {
	err := errors.Join(f.create(ctx, object{flowControl + "prioritylevelconfigurations", "no-seats"}),
		f.create(ctx, object{admission + "validatingadmissionpolicies", "deny"}))
	for _, o := range objects {
		err = errors.Join(err, f.create(ctx, o, metav1.DryRunAll))
	}
	return err
}

func (f *faults) create(ctx context.Context, o object, dryRun ...string) error {
	manifest, err := os.ReadFile(filepath.Join("testdata", o.name+".yaml"))
	if err != nil {
		return err
	}
	request := f.clients.Discovery().RESTClient().Post().AbsPath("/apis", o.resource)
	for _, which := range dryRun {
		request.Param("dryRun", which)
	}
	return request.SetHeader("Content-Type", "application/yaml").Body(manifest).Do(ctx).Error()
}

// object is the effect of an object on the server, which may be unavailable: the object
// exists for a part of the fault then, or not at all.
func (f *faults) object(k kind) effect {
	return effect{
		do: func(ctx context.Context, _ step) error {
			_ = persist(ctx, apierrors.IsAlreadyExists, func(ctx context.Context) error { return f.create(ctx, objects[k]) })
			return nil
		},
		undo: func(ctx context.Context, _ step) error {
			return persist(ctx, apierrors.IsNotFound, func(ctx context.Context) error {
				return f.clients.Discovery().RESTClient().Delete().AbsPath("/apis", objects[k].resource, objects[k].name).Do(ctx).Error()
			})
		},
	}
}

// persist repeats a request until it succeeds or has succeeded before, or ctx is done.
func persist(ctx context.Context, done func(error) bool, request func(context.Context) error) error {
	for {
		asking, cancel := context.WithTimeout(ctx, requestTimeout)
		err := request(asking)
		cancel()
		if err == nil || done(err) {
			return nil
		}
		if !until(ctx, time.Now().Add(tick)) {
			return err
		}
	}
}

func (f *faults) restart(ctx context.Context, server *controlplane.Server) (err error) {
	if server == f.server && f.upgrade != nil {
		f.upgrade()
	}
	for range startAttempts {
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		err = server.Restart(starting)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		f.log("the server did not start, retrying: %v", err)
	}
	return err
}

// controllerUser is the user of the emitters, since API Priority and Fairness exempts
// administrators.
var controllerUser = controlplane.User{Name: "chaos-controller", Token: "chaos-controller-token"}

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
	line := fmt.Sprintf("%7.1fs %-27s for %.1fs", s.at.Seconds(), s.kind, s.lasts.Seconds())
	if s.fault != (faultproxy.Fault{}) {
		line += fmt.Sprintf(" %+v", s.fault)
	}
	return line
}

// schedule contains the steps of a run, for each track and each emitter.
type schedule struct {
	faults, emitters [][]step
}

// newSchedule returns the schedule of a seed. A longer schedule starts with the steps
// of a shorter one.
func newSchedule(seed uint64, emitters int, duration time.Duration) (s schedule) {
	for i, t := range tracks {
		s.faults = append(s.faults, t.plan(rand.New(rand.NewPCG(seed, uint64(1+i))), duration))
	}
	for i := range emitters {
		s.emitters = append(s.emitters, emitterTrack(i).plan(rand.New(rand.NewPCG(seed, uint64(10+i))), duration))
	}
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

// plan returns a list of steps. Kinds come in random order, and each kind comes once
// before any kind comes again.
func (t track) plan(rng *rand.Rand, duration time.Duration) []step {
	var steps []step
	var deck []kind
	gap := t.brisk
	for now := time.Duration(0); ; {
		if len(deck) == 0 {
			if len(steps) > 0 {
				gap = t.calm
			}
			deck = slices.Clone(t.kinds)
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		s := step{at: now + gap.draw(rng), lasts: t.lasts.draw(rng), kind: deck[0]}
		deck = deck[1:]
		if rng.IntN(8) == 0 && t.long > 0 {
			s.lasts = t.long
		}
		s.fault = proxyFault(s.kind, rng)
		if now = s.at + s.lasts; now > duration {
			return steps
		}
		steps = append(steps, s)
	}
}

func proxyFault(k kind, rng *rand.Rand) faultproxy.Fault {
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
	var lines []string
	for _, s := range slices.Concat(s.faults...) {
		lines = append(lines, s.String())
	}
	for emitter, steps := range s.emitters {
		for _, s := range steps {
			lines = append(lines, fmt.Sprintf("%v, emitter %d", s, emitter))
		}
	}
	slices.Sort(lines) // the time comes first
	return strings.Join(lines, "\n")
}
