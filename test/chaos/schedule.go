package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/eventseries/eventseries/test/faultproxy"
)

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

// step is a fault, or the end of an emitter process.
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
		line += " (" + s.fault.String() + ")"
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

// span is a range of durations in seconds.
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

func (s schedule) count() map[kind]int {
	counts := make(map[kind]int)
	for _, steps := range s.lists() {
		for _, s := range steps {
			counts[s.kind]++
		}
	}
	return counts
}
