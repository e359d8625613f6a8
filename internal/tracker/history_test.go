package tracker

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventseries/eventseries/series"
)

var (
	oracleSeed  = flag.Uint64("oracle.seed", 0, "the one history to compare with the oracle; 0: many")
	oracleSeeds = flag.Int("oracle.seeds", 30, "how many histories to compare with the oracle")
	oracleSteps = flag.Int("oracle.steps", 1000, "how long they are")
)

// TestOracle takes a tracker and the oracle through the same random histories. A
// failure names its seed; -oracle.seed repeats that history.
func TestOracle(t *testing.T) { manyHistories(t, false) }

// TestForgetful is TestOracle without the oracle, for trackers that soon forget
// which names are taken: they make more requests, and neither lose nor double
// anything either.
func TestForgetful(t *testing.T) { manyHistories(t, true) }

func manyHistories(t *testing.T, forgetful bool) {
	first, n := uint64(1), uint64(*oracleSeeds)
	if *oracleSeed != 0 {
		first, n = *oracleSeed, 1
	}
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		newHistory(t, seed, forgetful).run(*oracleSteps)
	}
}

// history takes both machines through random steps.
type history struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	pair
	roomy     bool // there is room for all, so series live long and are written often
	slow      bool // the server answers slowly, otherwise more entries are written in time
	keys      []string
	now       time.Duration
	restoreIn int // steps until restore
	told      []string
}

func newHistory(t *testing.T, seed uint64, forgetful bool) *history {
	rng := rand.New(rand.NewPCG(seed, 0))
	opts := Options{
		Capacity:       1 + rng.IntN(5),
		FirstHeartbeat: []time.Duration{0, time.Minute}[rng.IntN(2)],
		EventTTL:       []time.Duration{20 * time.Minute, time.Hour}[rng.IntN(2)],
		Scope:          []Scope{SameInstance, SameController}[rng.IntN(2)],
	}
	roomy := rng.IntN(3) == 0
	if roomy {
		opts.Capacity = spreadFrom // above that, heartbeats depend on hashes
	}
	h := &history{t: t, seed: seed, rng: rng, pair: newPair(t, opts), roomy: roomy, slow: rng.IntN(2) == 0}
	h.keys = strings.Split("a b c d A B C D", " ")[:3+rng.IntN(6)]
	if roomy {
		h.keys = h.keys[:2]
	}
	if rng.IntN(3) == 0 {
		h.w.distinct = 1 + rng.IntN(3)
		h.o.distinct = h.w.distinct
	}
	if opts.Scope == SameInstance && rng.IntN(3) == 0 {
		h.w.remote.versionless = true
	}
	if forgetful {
		h.w.forgetful, h.o = true, nil
	}
	h.w.begun(start.Add(-day))
	return h
}

// do makes a step as a script does.
func (h *history) do(format string, args ...any) {
	h.t.Helper()
	command := fmt.Sprintf(format, args...)
	result := runCommand(h.t, h.pair, h.now, strings.Fields(command))
	h.told = append(h.told, fmt.Sprintf("%s %s -> %s", h.now, command, result))
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
	for range steps {
		// The microsecond keeps two occurrences from having the same time, for which no
		// order is promised.
		h.now += time.Microsecond + time.Duration(h.rng.Int64N(int64(20*time.Second)))
		switch h.rng.IntN(60) {
		case 0:
			h.now += h.w.opts.FinishAfter
		case 1:
			h.now -= time.Duration(h.rng.Int64N(int64(10 * time.Minute)))
		case 2:
			h.now += time.Duration(h.rng.Int64N(int64(time.Hour)))
		}
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
		runCommand(h.t, h.pair, h.now, []string{"accepting"})
		for label, e := range h.w.entries {
			if e.life != forgotten {
				runCommand(h.t, h.pair, h.now, []string{"status", label})
			}
		}
		h.w.check()
		if h.t.Failed() {
			tail := h.told[max(0, len(h.told)-60):]
			h.t.Fatalf("seed %d, %+v, after\n%s", h.seed, h.w.opts, strings.Join(tail, "\n"))
		}
	}
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
	case pick == 98 && h.rng.IntN(20) == 0:
		// Whoever clears does not write any more.
		h.do("clear Shutdown")
		h.do("kill")
	case pick == 98:
		h.do("list")
	case h.rng.IntN(2) == 0:
		h.do("kill")
		// What is not known to the new process can be anything.
		for _, key := range h.keys {
			h.put(key)
		}
		if h.rng.IntN(3) > 0 {
			h.do("list")
			h.restoreIn = 1 + h.rng.IntN(40)
		}
	case h.rng.IntN(2) == 0:
		if all := h.w.all(""); len(all) > 0 {
			at := oneOf(h.rng, all...)
			h.do("delete %s %s", at.key, at.name)
		}
	default:
		h.restoreIn = 1
	}
}

// respond ends a request.
func (h *history) respond(label string, kind Kind) {
	switch outcome := h.rng.IntN(20); {
	case kind == Look && outcome >= 12, outcome == 6:
		h.do("refuse %s Malformed", label)
	case outcome < 2:
		h.do("gone %s", label)
	case outcome < 6:
		h.do("%s %s", oneOf(h.rng, append(failures, lost, lost)...), label)
	default:
		h.do("answer %s", label)
	}
}

// meddle makes another process of the controller write.
func (h *history) meddle() {
	all := slices.DeleteFunc(h.w.all(""), func(at listed) bool { return at.ev.stranger != "" })
	if h.w.opts.Scope != SameController || len(all) == 0 || h.rng.IntN(15) > 0 {
		return
	}
	at := oneOf(h.rng, all...)
	n, state := 1+h.rng.IntN(5), oneOf(h.rng, series.Ongoing, series.Ongoing, series.Ongoing, series.Finished)
	if at.ev.count() > 1 && h.rng.IntN(4) == 0 {
		n, state = 0, series.Finished // it was restored, and has not occurred there
	}
	h.do("meddle %s %s x%d %s", at.key, at.name, n, state)
}

// put stores Events under the names of a key that nobody here has created.
func (h *history) put(key string) {
	age := oneOf(h.rng, time.Minute, 6*time.Minute, 40*time.Minute, 2*time.Hour)
	begun := h.now + time.Minute/2 - time.Duration(h.rng.Int64N(int64(age)))
	unique := naming{unique: true, first: micros(begun)}
	for _, name := range []naming{unique, {}} {
		k, _ := h.w.key(key)
		if _, stands := h.w.remote.events[name.of(k)]; stands || h.rng.IntN(2) == 0 {
			continue
		}
		if h.rng.IntN(4) == 0 {
			h.do("stranger %s %s %s", key, name, oneOf(h.rng, strangenesses...))
			continue
		}
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
		h.do("stand %s %s %s x%d %s %s %s", key, name, state, count, first, last, successor)
	}
}
