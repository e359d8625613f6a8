package tracker

import (
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/fakeapi"
	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

var (
	oracleSeed  = flag.Uint64("oracle.seed", 0, "the one random history to run; 0: many")
	oracleFirst = flag.Uint64("oracle.first", 1, "the seed of the first random history")
	oracleSeeds = flag.Uint64("oracle.seeds", 12, "how many random histories of each kind there are; with -short a quarter")
	oracleTail  = flag.Int("oracle.tail", 60, "how many steps a failure shows")
	oracleSteps = flag.Int("oracle.steps", 500, "how long the histories of TestOracle are")
)

// grid is which random histories there are.
var grid = []struct {
	name     string
	leaders  int  // processes at once
	restarts bool // processes are killed, and others begin
}{{"one process", 1, false}, {"restarts", 1, true}, {"leaders", 2, true}}

// TestOracle takes trackers through random histories. The oracle is the books of the server. It
// knows no rule of the tracker, but each occurrence: what Events contain, what was dropped, what
// is still to be written, and what was lost with a process that was killed is all that has
// occurred. None counts twice, no key has two Events, and no count and no time goes back. A
// failure names its seed; -oracle.seed repeats that history.
func TestOracle(t *testing.T) {
	for _, conf := range grid {
		for _, faults := range [][]failure{{unsent, pushedBack, denied}, {unsent, pushedBack, denied, failed, lost, lost, lost, late, late}} {
			t.Run(fmt.Sprintf("%s/lost answers=%t", conf.name, slices.Contains(faults, lost)), func(t *testing.T) {
				written, dropped, doubled := 0, 0, 0
				for seed := range seeds() {
					h := newHistory(t, seed, rand.New(rand.NewPCG(seed, 0)), conf.leaders)
					h.restarts, h.faults = conf.restarts, faults
					h.run(*oracleSteps)
					written, dropped, doubled = written+h.w.remote.n, dropped+h.w.remote.dropped.len(), doubled+h.w.remote.doubled
				}
				t.Logf("%d occurrences, %d dropped, %d counted twice", written, dropped, doubled)
			})
		}
	}
}

// seeds returns the seeds of the histories of each kind.
func seeds() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if *oracleSeed != 0 {
			yield(*oracleSeed)
			return
		}
		for seed := range workload.Seeds(*oracleSeeds) {
			if !yield(*oracleFirst + seed) {
				return
			}
		}
	}
}

// history takes processes through random steps.
type history struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	w        *world // of the current step
	worlds   []*world
	restarts bool
	faults   []failure
	roomy    bool // there is room for all, so series live long and are written often
	slow     bool // the server responds slowly
	keys     []string
	now      time.Duration
	latest   time.Duration            // that now was
	clocks   map[*world]time.Duration // how far they are ahead
	told     []string
	listed   int // len(told) when the latest list was made
}

func newHistory(t *testing.T, seed uint64, rng *rand.Rand, leaders int) *history {
	opts := drawOptions(rng)
	h := &history{t: t, seed: seed, rng: rng, roomy: rng.IntN(2) == 0, slow: rng.IntN(2) == 0, clocks: map[*world]time.Duration{}}
	h.keys = strings.Split("a b c d A B C D", " ")[:3+rng.IntN(6)]
	if h.roomy {
		opts.Capacity, h.keys = 100, h.keys[:2]
	}
	if leaders > 1 {
		opts.Shared = true
	}
	distinct := max(rng.IntN(9)-5, 0)
	remote := newServer(t)
	remote.versionless = !opts.Shared && rng.IntN(3) == 0
	remote.mark = 500 * time.Microsecond
	for i := range leaders {
		opts.Seed = uint64(markRange) + uint64(i)
		h.w = newWorld(t, opts, remote)
		h.w.distinct = distinct
		if leaders > 1 {
			h.w.age = 24 * time.Hour // the clock can be set back, but not to before that
		}
		h.w.begun(0)
		if i > 0 {
			h.setClock()
		}
		h.worlds = append(h.worlds, h.w)
	}
	return h
}

// drawOptions returns options that Options.Validate of package events accepts.
func drawOptions(rng *rand.Rand) Options {
	o := Options{Capacity: 1 + rng.IntN(5), Shared: oneOf(rng, false, true)}
	if rng.IntN(2) == 0 {
		o.FinishAfter = between(rng, time.Second, time.Hour)
	}
	if rng.IntN(2) == 0 {
		o.EventTTL = between(rng, time.Minute, 3*time.Hour)
	}
	d := o.WithDefaults()
	o.MaxWindow = oneOf(rng, 0, d.FinishAfter, between(rng, d.FinishAfter, d.MaxWindow), between(rng, d.MaxWindow, 3*time.Hour))
	if rng.IntN(2) == 0 {
		o.HeartbeatInterval = between(rng, d.EventTTL/20, d.EventTTL-1)
	}
	if d = o.WithDefaults(); rng.IntN(2) == 0 {
		o.FirstHeartbeat = between(rng, d.HeartbeatInterval/30, d.HeartbeatInterval)
	}
	return o
}

// between returns a duration from low to high, all orders of magnitude equally likely.
func between(rng *rand.Rand, low, high time.Duration) time.Duration {
	return min(time.Duration(float64(low)*math.Pow(float64(high)/float64(low), rng.Float64())), high)
}

func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// setClock sets the clock of a process up to two minutes ahead or behind.
func (h *history) setClock() {
	h.clocks[h.w] = time.Duration(h.rng.Int64N(int64(4*time.Minute))) - 2*time.Minute
}

// do makes a step as a script does.
func (h *history) do(format string, args ...any) (result string) {
	h.t.Helper()
	command := fmt.Sprintf(format, args...)
	result = run(h.w, h.now+h.clocks[h.w], strings.Fields(command))
	h.told = append(h.told, fmt.Sprintf("%d: %s %s -> %s", h.w.lives, h.now, command, result))
	h.failNow()
	return result
}

// check checks all invariants, and the books.
func (h *history) check() {
	h.t.Helper()
	h.w.check()
	h.failNow()
}

// failNow ends a test that has failed with the latest steps, and how to repeat them. What is wrong
// comes before that.
func (h *history) failNow() {
	h.t.Helper()
	if h.t.Failed() {
		tail := slices.Clone(h.told[max(0, len(h.told)-*oracleTail):])
		slices.Reverse(tail)
		pattern := "^" + strings.ReplaceAll(h.t.Name(), "/", "$/^") + "$"
		h.t.Fatalf("go test ./internal/tracker -run '%s' -oracle.seed=%d repeats this, the latest step first:\n%s\n%+v",
			pattern, h.seed, strings.Join(tail, "\n"), h.w.opts)
	}
}

func (h *history) run(steps int) {
	h.put()
	for range steps {
		// The microsecond keeps two occurrences from having the same time, for which no order
		// is promised.
		h.now += time.Microsecond + time.Duration(h.rng.Int64N(int64(h.w.opts.FinishAfter/18)))
		switch h.rng.IntN(60) {
		case 0:
			h.now += h.w.opts.FinishAfter
		case 1:
			// All clocks together differ by less than 10 minutes: Events of the future are strange.
			h.now = max(h.now-time.Duration(h.rng.Int64N(int64(3*time.Minute))), h.latest-3*time.Minute)
		case 2:
			h.now += time.Duration(h.rng.Int64N(int64(time.Hour)))
		}
		h.latest = max(h.latest, h.now)
		h.w = oneOf(h.rng, h.worlds...)
		h.step()
		if h.rng.IntN(15) == 0 {
			h.meddle()
		}
		h.check()
	}
	h.drain()
}

func (h *history) step() {
	switch pick := h.rng.IntN(100); {
	case pick < 40:
		h.do("see %s %s", oneOf(h.rng, h.keys...), oneOf(h.rng, "", "one", "two", "three"))
	case pick < 60:
		h.do("next")
	case pick < 82:
		if label := h.flying(); label != "" && (!h.slow || h.rng.IntN(3) == 0) {
			h.respond(label)
		}
	case pick < 88:
		h.do("advance")
	case pick < 92:
		h.do("flush")
	case pick < 94:
		h.do("settled")
	case pick < 96:
		h.delete()
	case pick < 97 && h.restarts:
		if h.rng.IntN(4) == 0 {
			h.do("clear Shutdown") // whoever clears does not write any more
		}
		h.w.opts.Seed += 2 // leaders have different marks
		h.setClock()
		h.do("kill")
		h.put()
	case pick < 98:
		h.list()
	default:
		// A list is out of date for seconds. If there are no versions, nothing could tell that.
		if h.w.remote.versionless || h.rng.IntN(3) == 0 || len(h.told)-h.listed > 20 {
			h.list()
		}
		h.do("restore")
	}
}

func (h *history) list() {
	h.do("list")
	h.listed = len(h.told)
}

// arrive has the server handle all late requests. None is late for as long as it takes until an
// Event expires.
func (h *history) arrive() {
	for _, w := range h.worlds {
		for len(w.late) > 0 {
			w.arrive()
		}
	}
}

// flying returns the label of a request in flight, if there is one.
func (h *history) flying() string {
	if len(h.w.inFlight) == 0 {
		return ""
	}
	return h.labelOf(oneOf(h.rng, h.w.inFlight...))
}

func (h *history) labelOf(f *flight) string {
	if f.entry.class == classNone {
		return "old-" + f.key
	}
	return f.key
}

// respond ends a request.
func (h *history) respond(label string) {
	if h.rng.IntN(3) == 0 {
		h.do("arrive")
	}
	switch outcome := h.rng.IntN(20); {
	case outcome < 1:
		h.arrive()
		h.do("gone %s", label)
	case outcome < 2:
		h.do("refused %s", label)
	case outcome < 7:
		how := oneOf(h.rng, h.faults...)
		if how == late && h.w.remote.versionless {
			how = lost // the server could not tell that it is late
		}
		h.do("%s %s", how, label)
	default:
		h.do("answer %s", label)
	}
}

// delete deletes an Event of this controller.
func (h *history) delete() {
	all := slices.DeleteFunc(h.w.remote.all(""), func(ev *remoteEvent) bool { return ev.stranger != "" })
	if len(all) > 0 {
		ev := oneOf(h.rng, all...)
		h.told = append(h.told, fmt.Sprintf("%s delete %s", h.now, ev.event.Name))
		h.arrive()
		h.w.remote.remove(ev.event.Name)
	}
}

// meddle makes another process of the controller write, or a webhook change an Event.
func (h *history) meddle() {
	all := slices.DeleteFunc(h.w.remote.all(""), func(ev *remoteEvent) bool { return ev.stranger != "" })
	if len(all) == 0 {
		return
	}
	ev := oneOf(h.rng, all...)
	if h.rng.IntN(6) == 0 && (ev.event.Series != nil || !h.restarts && len(h.worlds) == 1) {
		h.do("change %s %s", ev.key, oneOf(h.rng, slices.Sorted(maps.Keys(fakeapi.Fields))...))
		return
	}
	if !h.w.opts.Shared {
		return
	}
	n, state := 1+h.rng.IntN(5), oneOf(h.rng, series.Ongoing, series.Ongoing, series.Ongoing, series.Finished)
	if ev.count() > 1 && h.rng.IntN(4) == 0 {
		n, state = 0, series.Finished // it was restored, and has not occurred there
	}
	h.do("meddle %s x%d %s", ev.key, n, state)
}

// put stores Events that nobody here has created. A stranger keeps its name: who comes after it was
// deleted could not know that there is an Event with the next salt.
func (h *history) put() {
	for _, key := range h.keys {
		k, _ := h.w.key(key)
		salt := 0
		for salt < 2 && h.w.remote.events[k.Name(salt)] == nil && h.now == 0 && h.rng.IntN(4) == 0 {
			h.do("stranger %s salt%d %s", key, salt, oneOf(h.rng, clash, garbage, future, hijack))
			salt++
		}
		if len(h.w.remote.all(key)) > salt || h.rng.IntN(3) == 0 {
			continue
		}
		age := oneOf(h.rng, time.Minute, 6*time.Minute, 40*time.Minute, 2*time.Hour)
		first := h.now + time.Minute/2 - time.Duration(h.rng.Int64N(int64(age)))
		last, count, state := first, 1, oneOf(h.rng, series.Singleton, series.Ongoing, series.Ongoing, series.Finished, series.Unknown)
		if state != series.Singleton {
			count = 2 + h.rng.IntN(10)
			last += time.Duration(h.rng.Int64N(int64(h.now-first) + int64(2*time.Minute)))
		}
		for h.w.remote.events[k.Name(salt)] != nil {
			salt++
		}
		h.do("stand %s %s x%d %s %s salt%d heartbeat=%s window=%s", key, state, count, first, last, salt,
			oneOf(h.rng, h.w.opts.HeartbeatInterval, 20*time.Minute), oneOf(h.rng, 0, h.w.opts.FinishAfter, h.w.opts.MaxWindow))
	}
}

// drain has everything written that is not, until nothing is tracked.
func (h *history) drain() {
	for range 3 {
		for _, h.w = range h.worlds {
			for range 6 {
				h.now += time.Hour + h.w.opts.MaxWindow + h.w.opts.EventTTL
				h.arrive()
				for h.flying() != "" {
					h.do("answer %s", h.flying())
				}
				for h.do("next") != "" && h.flying() != "" {
					h.do("answer %s", h.flying())
				}
				h.check()
			}
		}
	}
	for _, h.w = range h.worlds {
		if sizes := h.w.sizes(); sizes != "0 singletons, 0 ongoing, 0 ended, 0 closing" {
			h.t.Errorf("%s at the end", sizes)
		}
	}
	h.check()
}

// Several processes emit one series in loops that begin and end at random times, list, and stop in order or not. The
// Event is never Finished while one of them emits, and Finished in the end.
func TestNeverFinishedWhileOneEmits(t *testing.T) {
	for seed := range workload.Seeds(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		opts := Options{Shared: oneOf(rng, false, true)}
		remote := newServer(t)
		var worlds []*world
		for i := range 2 + rng.IntN(2) {
			opts.Seed = uint64(markRange) + uint64(i)
			worlds = append(worlds, newWorld(t, opts, remote))
		}
		end := 6 * time.Hour
		emits := make([][]time.Duration, len(worlds)) // when each process emits
		for i := range worlds {
			for at := time.Duration(rng.Int64N(int64(time.Hour))); at < end; at += time.Duration(rng.Int64N(int64(2 * time.Hour))) {
				gap := between(rng, 5*time.Second, 170*time.Second)
				for n := 1 + rng.IntN(60); n > 0 && at < end; n-- {
					emits[i] = append(emits[i], at)
					at += gap
				}
			}
		}
		lasts, lists := make([][2]time.Duration, len(worlds)), 0 // the latest two of each
		for now := time.Duration(0); now < end+3*time.Hour; {
			next := end + 3*time.Hour
			for i, w := range worlds {
				for len(emits[i]) > 0 && emits[i][0] <= now {
					w.see("a", "", nil, now)
					lasts[i], emits[i] = [2]time.Duration{lasts[i][1], now}, emits[i][1:]
				}
				if rng.IntN(200) == 0 && lists < 20 {
					lists++
					run(w, now, []string{"list"})
					run(w, now, []string{"restore"})
				}
				for w.begin("", now) != "no write" {
					w.answer(w.inFlight[0].key, now)
				}
				for _, last := range lasts {
					isLoop := last[0] > 0 && last[1]-last[0] < 3*time.Minute && now-last[1] < series.FinishAfter-time.Second
					for _, ev := range remote.all("") {
						require.False(t, isLoop && read(ev.event).State == series.Finished, "seed %d at %s", seed, now)
					}
				}
				due, request := wakes(w.tracker, start.Add(now))
				for _, at := range []time.Time{due, request} {
					if !at.IsZero() {
						next = min(next, at.Sub(start))
					}
				}
				if len(emits[i]) > 0 {
					next = min(next, emits[i][0])
				}
			}
			now = max(now+time.Millisecond, next)
			remote.now = now
		}
		for _, ev := range remote.all("") {
			require.NotEqual(t, series.Ongoing, read(ev.event).State, "seed %d", seed)
		}
	}
}
