package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/eventseries/eventseries/test/faultproxy"
)

// kind is what happens in a step of a schedule.
type kind string

// What happens to the server and its etcd.
const (
	killServer  kind = "server killed"
	pauseServer kind = "server paused"
	slowEtcd    kind = "etcd slow"
	holdEtcd    kind = "etcd cut off"
	resetEtcd   kind = "etcd reset"
	// pushBack comes where it is asked for, beside all others.
	pushBack kind = "server pushes back"
)

// What happens to the network between the server and the emitters.
const (
	netRefuse  kind = "network refuses"
	netReset   kind = "network resets"
	netCut     kind = "network cuts answers short"
	netHold    kind = "network holds all"
	netAnswers kind = "network holds answers"
	netSlow    kind = "network slow"
)

// What happens to an emitter. All are followed by another life of it.
const (
	stopEmitter  kind = "emitter stopped"            // with all the time it needs
	hurryEmitter kind = "emitter stopped in a hurry" // with very little
	killEmitter  kind = "emitter killed"
	// flushEmitter comes at the end of all, and is in no schedule.
	flushEmitter kind = "emitter flushed and stopped"
)

var (
	serverKinds  = []kind{killServer, pauseServer, slowEtcd, holdEtcd, resetEtcd}
	networkKinds = []kind{netRefuse, netReset, netCut, netHold, netAnswers, netSlow}
	// Half of them are killed, since that is the hardest.
	emitterKinds = []kind{stopEmitter, killEmitter, hurryEmitter, killEmitter}
)

// step is one thing that happens.
type step struct {
	// at is when it begins, since the begin of all; later, if the one before it
	// has not ended.
	at time.Duration
	// lasts is how long a fault goes on, or an emitter is away.
	lasts time.Duration
	kind  kind
	// fault is that of the proxy, if it is one.
	fault faultproxy.Fault
}

func (s step) String() string {
	line := fmt.Sprintf("%7.1fs %-26s for %.1fs", s.at.Seconds(), s.kind, s.lasts.Seconds())
	if s.fault != (faultproxy.Fault{}) {
		line += " (" + s.fault.String() + ")"
	}
	return line
}

// schedule is all that happens in a run. What is in one list happens one after
// the other; the lists go on side by side.
type schedule struct {
	server   []step // the server and its etcd
	network  []step
	pushBack []step // none, mostly
	emitters [][]step
}

// newSchedule makes the schedule of a seed. The same arguments give the same
// schedule, and a longer one begins like a shorter one.
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

// withPushBacks returns s with push-backs of the server.
func (s schedule) withPushBacks(seed uint64, duration time.Duration) schedule {
	s.pushBack = plan(rand.New(rand.NewPCG(seed, 3)), duration, []kind{pushBack}, pushBackPace)
	return s
}

// span is a range of time.
type span struct{ from, to time.Duration }

func (s span) draw(rng *rand.Rand) time.Duration {
	return s.from + time.Duration(rng.Int64N(int64(s.to-s.from))).Round(time.Millisecond)
}

// pace is how fast a list of steps goes.
type pace struct {
	// brisk is the time between two steps until there has been one of each kind,
	// calm that after. All must go well for a while now and then, or else nothing
	// is known of what a process that is killed has written.
	brisk, calm span
	// lasts is how long a step does.
	lasts span
	// long, if not zero, is how long one in eight steps lasts.
	long time.Duration
}

var (
	serverPace = pace{
		brisk: span{time.Second, 7 * time.Second},
		calm:  span{3 * time.Second, 20 * time.Second},
		lasts: span{500 * time.Millisecond, 5 * time.Second},
	}
	networkPace = pace{
		brisk: span{time.Second, 6 * time.Second},
		calm:  span{3 * time.Second, 18 * time.Second},
		lasts: span{500 * time.Millisecond, 6 * time.Second},
	}
	// Pauses become longer each time, so some of these last for several.
	pushBackPace = pace{
		brisk: span{10 * time.Second, 20 * time.Second},
		calm:  span{20 * time.Second, 40 * time.Second},
		lasts: span{3 * time.Second, 25 * time.Second},
	}
	emitterPace = pace{
		brisk: span{4 * time.Second, 16 * time.Second},
		calm:  span{8 * time.Second, 40 * time.Second},
		lasts: span{0, 4 * time.Second},
		// What was left is dead when the next life comes.
		long: 2 * (heartbeatInterval + finishAfter),
	}
)

// plan makes one list of steps. All kinds have come before the list of them begins
// anew, in another order.
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

// faultOf draws the fault of the proxy that belongs to a kind, if one does.
func faultOf(k kind, rng *rand.Rand) faultproxy.Fault {
	switch k {
	case netRefuse, resetEtcd:
		return faultproxy.Fault{Refuse: true}
	case netCut:
		// From the middle of the TLS handshake to some answers later.
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

// String lists all steps in the order of their times.
func (s schedule) String() string {
	type line struct {
		step
		of string
	}
	var all []line
	add := func(of string, steps []step) {
		for _, s := range steps {
			all = append(all, line{s, of})
		}
	}
	add("", s.server)
	add("", s.network)
	add("", s.pushBack)
	for i, steps := range s.emitters {
		add(fmt.Sprintf(", emitter %d", i), steps)
	}
	slices.SortStableFunc(all, func(a, b line) int { return int(a.at - b.at) })
	var text strings.Builder
	for _, l := range all {
		fmt.Fprintf(&text, "%v%s\n", l.step, l.of)
	}
	return text.String()
}

// count returns how often each kind of step is in the schedule.
func (s schedule) count() map[kind]int {
	counts := make(map[kind]int)
	for _, steps := range slices.Concat([][]step{s.server, s.network, s.pushBack}, s.emitters) {
		for _, s := range steps {
			counts[s.kind]++
		}
	}
	return counts
}
