package events

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/eventseries/eventseries/internal/workload"
)

var (
	gatesFirst = flag.Uint64("gates.first", 1, "the first seed of TestGatesInRandomFaults")
	gatesSeeds = flag.Uint64("gates.seeds", 15, "how many seeds TestGatesInRandomFaults has; with -short a quarter")
)

// gatesSettle is the bound of liveness: what is denied is tried again within 6 minutes, and what is
// rejected within 30. See docs/delivery.md.
const gatesSettle = 56 * time.Minute

// Permissions, webhooks, limits, namespaces, and the server itself fail for random times, which
// overlap, and the process restarts in between. Some objects stay denied. After the last
// fault, everything else is written within the bound, and nothing of it is dropped.
func TestGatesInRandomFaults(t *testing.T) {
	for seed := *gatesFirst; seed < *gatesFirst+workload.Seeds(*gatesSeeds); seed++ {
		runBubble(t, fmt.Sprint(seed), func(t *testing.T) { newGatesRun(t, seed).run() })
	}
}

// gatesRun is one history.
type gatesRun struct {
	*world
	t       *testing.T
	rng     *rand.Rand
	denied  int // objects below this number stay denied
	loops   int // good objects with an event each minute
	emitted uint64
	dropped map[string]int // by the processes before, by object
	faults  []gatesFault
}

// gatesFault is what happens to requests at a time.
type gatesFault struct {
	begin, end time.Time
	name       string
	answer     func(request) error
}

func newGatesRun(t *testing.T, seed uint64) *gatesRun {
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &gatesRun{world: &world{}, t: t, rng: rng, denied: []int{0, 1, 5, 40, 100}[rng.IntN(5)], loops: 1 + rng.IntN(30), dropped: map[string]int{}}
	s := newServer()
	s.replay = newReplay(t, seed, fmt.Sprintf("-gates.first=%d -gates.seeds=1", seed))
	s.api.TTL = time.Hour
	s.slow(5 * time.Millisecond)
	s.script(g.answer)
	s.api.After(func(ctx context.Context, r request) error {
		if apierrors.IsNotFound(r.Err) && strings.Contains(r.Body, `"series"`) {
			s.audit.Missing(r.Namespace, r.Name)
		}
		return s.after(ctx, r)
	})
	begin := time.Now()
	for range 2 + rng.IntN(6) {
		at := begin.Add(time.Duration(rng.IntN(240)) * time.Minute)
		f := g.draw()
		f.begin, f.end = at, at.Add(time.Duration(1+rng.IntN(60*(1+2*rng.IntN(2))))*time.Minute)
		g.faults = append(g.faults, f)
	}
	g.server = s
	g.start()
	return g
}

// start starts a process.
func (g *gatesRun) start() {
	s := g.server
	g.world = startOn(g.t, s, s, Options{OnDrop: func(d Drop) {
		s.audit.Dropped(d.Key.Regarding.Namespace, d.Key.Regarding.Name)
	}})
}

// draw returns a random fault.
func (g *gatesRun) draw() gatesFault {
	always := func(err error) func(request) error { return func(request) error { return err } }
	part := 1 + g.rng.IntN(4)
	return []gatesFault{
		{name: "denied", answer: always(statusError(403, 0))},
		{name: "unauthorized", answer: always(statusError(401, 0))},
		{name: "patches denied", answer: func(r request) error {
			if r.Verb == "patch" {
				return statusError(403, 0)
			}
			return nil
		}},
		{name: "some denied", answer: func(r request) error {
			if len(r.Name)%(part+1) == 0 {
				return statusError(403, 0)
			}
			return nil
		}},
		{name: "some fail", answer: func(r request) error {
			if r.Name[len(r.Name)-1]%byte(part+1) == 0 {
				return statusError(500, 0)
			}
			return nil
		}},
		{name: "unreachable", answer: always(urlError(syscall.ECONNREFUSED))},
		{name: "push-back", answer: always(statusError(429, 0))},
		{name: "push-back for a time", answer: always(statusError(429, 20))},
		{name: "no namespace", answer: func(r request) error {
			if r.Verb == "create" {
				return apierrors.NewNotFound(corev1.Resource("namespaces"), "ns")
			}
			return nil
		}},
		{name: "rejected", answer: always(statusError(422, 0))},
	}[g.rng.IntN(10)]
}

func (g *gatesRun) answer(ctx context.Context, r request) error {
	for _, f := range g.faults {
		if now := time.Now(); r.Verb != "list" && !now.Before(f.begin) && now.Before(f.end) {
			if err := f.answer(r); err != nil {
				return err
			}
		}
	}
	return bad(403, g.denied)(ctx, r)
}

// restart replaces the process.
func (g *gatesRun) restart() {
	g.broadcaster.Shutdown()
	g.keepDrops()
	g.start()
}

func (g *gatesRun) keepDrops() {
	for _, d := range g.world.dropped() {
		g.dropped[d.Key.Regarding.Name] += d.Count
	}
}

func (g *gatesRun) run() {
	var last time.Time
	for _, f := range g.faults {
		g.t.Logf("%s from %s to %s", f.name, f.begin.Format(time.TimeOnly), f.end.Format(time.TimeOnly))
		if f.end.After(last) {
			last = f.end
		}
	}
	g.t.Logf("%d denied, %d loops", g.denied, g.loops)
	minute := func() {
		for pod := range g.denied {
			g.emitAs("Warning", pod)
		}
		for pod := range g.loops {
			g.emitAs("Warning", good+pod)
		}
		g.emitted += uint64(g.denied + g.loops)
		if g.rng.IntN(10) == 0 {
			g.emitAs("Normal", good+1000+g.rng.IntN(1000))
			g.emitted++
		}
		time.Sleep(time.Minute + drift)
	}
	for time.Now().Before(last) {
		if g.rng.IntN(200) == 0 {
			g.t.Logf("restart at %s", time.Now().Format(time.TimeOnly))
			g.restart()
		}
		minute()
	}
	for time.Since(last) < 2*time.Minute { // within these, what has waited for EventTTL before is dropped
		minute()
	}
	dropped := g.droppedFor()
	for time.Since(last) < gatesSettle {
		minute()
	}
	assert.Equal(g.t, dropped, g.droppedFor(), "dropped although nothing fails")
	for pod := range g.loops {
		require.True(g.t, g.isShown(good+pod), "loop %d", good+pod)
	}
	single := good + 3000
	g.emitAs("Warning", single)
	g.emitted++
	time.Sleep(5 * time.Second)
	assert.NotEmpty(g.t, g.requestsFor(single))
	g.broadcaster.Shutdown()
	g.keepDrops()
	g.server.assertNoProblems(g.t)
	lost := 0
	for name, n := range g.dropped {
		require.True(g.t, strings.HasPrefix(name, "pod-"))
		lost += n
	}
	delivered := g.server.delivered() - g.server.audit.Repeated()
	assert.Equal(g.t, g.emitted, delivered+uint64(lost), "%d delivered, %d dropped", delivered, lost)
}
