package tracker

import (
	"flag"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

var (
	oracleSeed  = flag.Uint64("oracle.seed", 0, "the one history to compare with the oracle; 0: many")
	oracleFirst = flag.Uint64("oracle.first", 1, "the seed of the first history to compare with the oracle")
	oracleSeeds = flag.Int("oracle.seeds", 4, "how many histories of each kind to compare with the oracle")
	oracleSteps = flag.Int("oracle.steps", 500, "how long they are")
)

// grid is which random histories there are.
var grid = []struct {
	name      string
	leaders   int  // processes at once
	restarts  bool // processes are killed, and others begin
	forgetful bool // trackers soon forget which names are taken, and have no oracle
}{
	{"one process", 1, false, false},
	{"restarts", 1, true, false},
	{"leaders", 2, true, false},
	{"forgetful process", 1, false, true},
	{"forgetful restarts", 1, true, true},
	{"forgetful leaders", 2, true, true},
}

// TestOracle takes trackers and their oracles through the same random histories. In
// the end, what the Events say, what was dropped, and what was not written before a
// process was killed is what has occurred. A failure names its seed; -oracle.seed
// repeats that history.
func TestOracle(t *testing.T) {
	for _, conf := range grid {
		for _, faults := range [][]failure{{unsent, pushedBack, denied}, {unsent, pushedBack, denied, failed, lost, lost, lost, late, late}} {
			t.Run(fmt.Sprintf("%s/lost answers=%t", conf.name, len(faults) > 3), func(t *testing.T) {
				sum := map[string]int{}
				digest := fnv.New64a()
				n := 0
				for seed := range seeds() {
					n++
					h := newHistory(t, seed, conf.leaders, conf.forgetful)
					h.restarts, h.faults = conf.restarts, faults
					h.run(*oracleSteps)
					for _, line := range h.told {
						digest.Write([]byte(line))
					}
					if t.Failed() {
						return
					}
					b := h.w.remote.books
					for name, account := range map[string]account{"occurrences": b.occurrences, "dropped": b.dropped, "killed": b.killed, "dropped and written": b.doubted, "written twice": b.doubled} {
						for _, n := range account {
							sum[name] += n
						}
					}
				}
				t.Logf("%d histories: %v %x", n, sum, digest.Sum64())
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
		for seed := *oracleFirst; seed < *oracleFirst+uint64(*oracleSeeds) && yield(seed); seed++ {
		}
	}
}

// history takes both machines of each process through random steps.
type history struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	pair
	pairs     []pair
	restarts  bool
	faults    []failure
	roomy     bool // there is room for all, so series live long and are written often
	slow      bool // the server answers slowly, otherwise more entries are written in time
	calm      bool // the server refuses nothing, and workers are fast, so leaders share series
	keys      []string
	now       time.Duration
	clocks    map[*world]time.Duration // how far they are ahead
	restoreIn int                      // steps until restore
	told      []string
}

// leaderMarks is more than the marks of all leaders.
const leaderMarks = 500

func newHistory(t *testing.T, seed uint64, leaders int, forgetful bool) *history {
	rng := rand.New(rand.NewPCG(seed, 0))
	return newHistoryWith(t, seed, rng, drawOptions(rng), leaders, forgetful)
}

func newHistoryWith(t *testing.T, seed uint64, rng *rand.Rand, opts Options, leaders int, forgetful bool) *history {
	roomy := rng.IntN(2) == 0
	if roomy {
		opts.Capacity = spreadFrom // above that, heartbeats depend on hashes
	}
	if leaders > 1 {
		opts.Scope = SameController
	}
	h := &history{t: t, seed: seed, rng: rng, roomy: roomy, slow: rng.IntN(2) == 0, calm: rng.IntN(2) == 0, clocks: map[*world]time.Duration{}}
	h.keys = strings.Split("a b c d A B C D", " ")[:3+rng.IntN(6)]
	if roomy {
		h.keys = h.keys[:2]
	}
	distinct := max(rng.IntN(9)-5, 0)
	remote := newServer(t)
	remote.versionless = opts.Scope == SameInstance && rng.IntN(3) == 0
	remote.mark = leaderMarks * time.Microsecond
	for i := range leaders {
		h.pair = newPair(t, opts, remote)
		h.w.mark, h.w.random = int64(i), true
		h.w.distinct, h.o.distinct = distinct, distinct
		if h.w.forgetful = forgetful; forgetful {
			h.o = nil
		}
		h.w.begun(start.Add(-day))
		if len(h.pairs) > 0 {
			h.setClock()
		}
		h.pairs = append(h.pairs, h.pair)
	}
	return h
}

// drawOptions returns options that Options.Validate of package events accepts.
func drawOptions(rng *rand.Rand) Options {
	o := Options{Capacity: 1 + rng.IntN(5), Scope: oneOf(rng, SameInstance, SameController)}
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

// setClock sets the clock of a process up to five minutes ahead or behind.
func (h *history) setClock() {
	h.clocks[h.w] = time.Duration(h.rng.Int64N(int64(10*time.Minute))) - 5*time.Minute
}

// do makes a step as a script does.
func (h *history) do(format string, args ...any) (result string) {
	h.t.Helper()
	command := fmt.Sprintf(format, args...)
	result = runCommand(h.t, h.pair, h.now+h.clocks[h.w], strings.Fields(command))
	h.told = append(h.told, fmt.Sprintf("%d: %s %s -> %s", h.w.lives, h.now, command, result))
	h.failNow()
	return result
}

// failNow ends a test that has failed with the latest steps, and how to repeat them.
func (h *history) failNow() {
	h.t.Helper()
	if h.t.Failed() {
		tail := h.told[max(0, len(h.told)-60):]
		h.t.Fatalf("go test ./internal/tracker -run '%s' -oracle.seed=%d repeats this: %+v, after\n%s", exactly(h.t.Name()), h.seed, h.w.opts, strings.Join(tail, "\n"))
	}
}

// work makes the requests that are ready.
func (h *history) work(respond func(label string, kind Kind)) {
	for h.w.tracker.Stats(start).Ready > 0 {
		label, _, _ := strings.Cut(h.do("next"), " ")
		if write, ok := h.w.inFlight[h.w.entries[label]]; ok {
			respond(label, write.Kind)
		}
	}
}

func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// some returns the label of one of the entries for which is holds, if any.
func (h *history) some(is func(e *Entry, inFlight bool) bool) string {
	var labels []string
	for _, label := range h.w.order {
		e := h.w.entries[label]
		if _, inFlight := h.w.inFlight[e]; is(e, inFlight) {
			labels = append(labels, label)
		}
	}
	if len(labels) == 0 {
		return ""
	}
	return oneOf(h.rng, labels...)
}

func (h *history) run(steps int) {
	h.put()
	for range steps {
		// The microsecond keeps two occurrences from having the same time, for which no
		// order is promised.
		h.now += time.Microsecond + time.Duration(h.rng.Int64N(int64(h.w.opts.FinishAfter/18)))
		switch h.rng.IntN(60) {
		case 0:
			h.now += h.w.opts.FinishAfter
		case 1:
			h.now -= time.Duration(h.rng.Int64N(int64(10 * time.Minute)))
		case 2:
			h.now += time.Duration(h.rng.Int64N(int64(time.Hour)))
		}
		h.pair = oneOf(h.rng, h.pairs...)
		h.step()
		h.meddle()
		if h.restoreIn--; h.restoreIn == 0 {
			spread := h.rng.Float64()
			h.now += time.Millisecond // something may have occurred in this step
			if h.o == nil {
				// It would not know what has ended since the list was made.
				h.do("list")
			}
			h.do("restore %v", spread)
		}
		if h.rng.IntN(10) == 0 {
			h.do("server %s", oneOf(h.rng, h.keys...))
		}
		h.check()
	}
	h.drain()
}

// check compares the machines, and fails with the latest steps if anything is wrong.
func (h *history) check() {
	var got, want []string
	if now := h.now + h.clocks[h.w]; h.o != nil {
		got, want = append(got, h.w.accepting()), append(want, h.o.accepting())
		for label, e := range h.w.entries {
			if e.life != forgotten {
				got, want = append(got, h.w.status(label, now)), append(want, h.o.status(label, now))
			}
		}
	}
	assert.Equal(h.t, want, got)
	h.w.check()
	h.failNow()
}

// exactly returns the pattern that selects one test.
func exactly(name string) string { return "^" + strings.ReplaceAll(name, "/", "$/^") + "$" }

// arriveAll has the server handle all late requests. None is late for as long as it
// takes until an Event expires.
func (h *history) arriveAll() {
	for _, p := range h.pairs {
		for len(p.w.late) > 0 {
			p.w.arrive()
		}
	}
}

// drain has everything written that is not, until nothing is tracked.
func (h *history) drain() {
	for range 3 {
		for _, h.pair = range h.pairs {
			for range 5 {
				h.now += time.Hour + h.w.opts.MaxWindow
				h.arriveAll()
				for _, label := range h.w.order {
					if _, inFlight := h.w.inFlight[h.w.entries[label]]; inFlight {
						h.do("answer %s", label)
					}
				}
				h.do("advance")
				h.work(func(label string, _ Kind) { h.do("answer %s", label) })
				h.check()
			}
		}
	}
	for _, h.pair = range h.pairs {
		if h.w.accepting() != "0 accepting, 0 closing" {
			h.t.Errorf("%s at the end", h.w.accepting())
		}
	}
	h.check()
}

func (h *history) step() {
	pick := h.rng.IntN(100)
	if h.roomy && pick < 15 {
		pick = 95 // flush
	}
	anyone := func(*Entry, bool) bool { return true }
	switch {
	case pick < 40 || len(h.w.order) == 0:
		key := oneOf(h.rng, h.keys...)
		h.do("see %s %s", key, oneOf(h.rng, "", "one", "two", "three"))
	case pick < 50 && h.calm:
		h.work(h.respond)
	case pick < 50:
		h.do("next")
	case pick < 60:
		label := h.some(func(e *Entry, inFlight bool) bool { return e.need() != none && !inFlight })
		if h.rng.IntN(10) == 0 { // perhaps one that has nothing to write
			label = h.some(func(e *Entry, inFlight bool) bool { return !inFlight })
		}
		if label != "" {
			h.do("begin %s", label)
		}
	case pick < 80:
		label := h.some(func(_ *Entry, inFlight bool) bool { return inFlight })
		if label != "" && (!h.slow || h.rng.IntN(3) == 0) {
			h.respond(label, h.w.inFlight[h.w.entries[label]].Kind)
		}
	case pick < 84:
		h.do("advance")
	case pick < 88:
		h.do("expire %s", h.some(anyone))
	case pick < 94:
		h.do("beat %s", h.some(anyone))
	case pick < 96:
		h.do("flush")
	case pick < 98:
		h.do("settled")
	case pick == 98 && h.restarts && h.rng.IntN(20) == 0:
		// Whoever clears does not write any more.
		h.do("clear Shutdown")
		h.do("kill")
	case pick == 98:
		h.do("list")
	case h.rng.IntN(2) == 0:
		if h.restarts {
			h.do("kill")
			h.setClock()
			h.put()
		}
		if h.rng.IntN(3) > 0 {
			h.do("list")
			h.restoreIn = 1 + h.rng.IntN(40)
		}
	case h.rng.IntN(2) == 0: //nolint:gocritic // draws again
		if all := h.w.all(""); len(all) > 0 {
			at := oneOf(h.rng, all...)
			h.arriveAll()
			h.do("delete %s %s", at.key, at.name)
		}
	default:
		h.restoreIn = 1
	}
}

// respond ends a request.
func (h *history) respond(label string, kind Kind) {
	if len(h.w.late) > 0 && h.rng.IntN(3) == 0 {
		h.do("arrive")
	}
	outcome := h.rng.IntN(20)
	if h.calm {
		outcome += 2
		kind = none
	}
	switch {
	case outcome < 2:
		h.arriveAll()
		h.do("gone %s", label)
	case kind == Look && outcome >= 12, outcome == 2 && !h.calm:
		h.do("refuse %s Malformed", label)
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

// meddle makes another process of the controller write.
func (h *history) meddle() {
	if h.w.opts.Scope != SameController || h.rng.IntN(15) > 0 {
		return
	}
	all := slices.DeleteFunc(h.w.all(""), func(at listed) bool { return at.ev.stranger != "" })
	if len(all) == 0 {
		return
	}
	at := oneOf(h.rng, all...)
	n, state := 1+h.rng.IntN(5), oneOf(h.rng, series.Ongoing, series.Ongoing, series.Ongoing, series.Finished)
	if at.ev.count() > 1 && h.rng.IntN(4) == 0 {
		n, state = 0, series.Finished // it was restored, and has not occurred there
	}
	h.do("meddle %s %s x%d %s", at.key, at.name, n, state)
}

// put stores Events that nobody here has created. What is not known to a new process
// can be anything, but no other process knows an Event whose name a stranger takes.
func (h *history) put() {
	for _, key := range h.keys {
		age := oneOf(h.rng, time.Minute, 6*time.Minute, 40*time.Minute, 2*time.Hour)
		begun := h.now + time.Minute/2 - time.Duration(h.rng.Int64N(int64(age)))
		unique := naming{unique: true, first: micros(begun)}
		for _, name := range []naming{unique, {}} {
			k, _ := h.w.key(key)
			if _, stands := h.w.remote.events[name.of(k)]; stands || h.rng.IntN(2) == 0 {
				continue
			}
			if h.rng.IntN(4) > 0 {
				h.stand(key, name, begun, unique)
			} else if h.now == 0 || len(h.pairs) == 1 {
				h.do("stranger %s %s %s", key, name, oneOf(h.rng, strangenesses...))
			}
		}
	}
}

func (h *history) stand(key string, name naming, begun time.Duration, unique naming) {
	first, count, successor := begun, 1, ""
	state := oneOf(h.rng, series.Singleton, series.Ongoing, series.Ongoing, series.Finished, series.Unknown)
	if !name.unique && h.rng.IntN(2) == 0 {
		first -= time.Duration(h.rng.Int64N(int64(20 * time.Minute)))
		if h.rng.IntN(2) == 0 {
			successor = oneOf(h.rng, unique, unique, unique, naming{unique: true, first: micros(begun - 1e6)}, naming{}).String()
		}
	}
	last := first
	if state != series.Singleton {
		count = 2 + h.rng.IntN(10)
		last += time.Duration(h.rng.Int64N(int64(h.now-first) + int64(2*time.Minute)))
	}
	heartbeat := oneOf(h.rng, 0, h.w.opts.HeartbeatInterval, otherHeartbeat)
	h.do("stand %s %s %s x%d %s %s %s every%s", key, name, state, count, first, last, successor, heartbeat)
}
