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

// both makes a step with both machines.
func (h *history) both(what string, step func(machine) string) {
	h.t.Helper()
	got, want := h.pair.both(step)
	h.compare(what, got, want)
}

func (h *history) compare(what, got, want string) {
	h.t.Helper()
	if got != want || !strings.HasPrefix(what, "status ") && what != "accepting" {
		h.told = append(h.told, fmt.Sprintf("%s %s -> %s", h.now, what, got))
	}
	if got != want {
		h.t.Errorf("%s -> %q, the oracle says %q", what, got, want)
	}
}

// others notes what other processes do.
func (h *history) others(what, result string) { h.compare(what, result, result) }

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
				h.w.list()
			}
			got, want := h.restore(spread, h.now)
			h.compare("restore", got, want)
		}

		h.both("accepting", machine.accepting)
		if h.rng.IntN(10) == 0 {
			key := oneOf(h.rng, h.keys...)
			h.others("server "+key, h.w.server(key))
		}
		for label, e := range h.w.entries {
			if e.life != forgotten {
				h.both("status "+label, func(m machine) string { return m.status(label, h.now) })
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
		note := oneOf(h.rng, "", "one", "two", "three")
		h.both("see "+key+" "+note, func(m machine) string { return m.see(key, note, h.now) })
	case pick < 50:
		h.next()
	case pick < 60:
		label := h.some(func(e *Entry, inFlight bool) bool { return e.need() != none && !inFlight })
		if h.rng.IntN(10) == 0 { // perhaps one that has nothing to write
			label = h.some(func(e *Entry, inFlight bool) bool { return !inFlight })
		}
		if label != "" {
			h.both("begin "+label, func(m machine) string { return m.begin(label, h.now) })
		}
	case pick < 80:
		label := h.some(func(_ *Entry, inFlight bool) bool { return inFlight })
		if label != "" && (!h.slow || h.rng.IntN(3) == 0) {
			h.respond(label, h.w.inFlight[h.w.entries[label]].Kind)
		}
	case pick < 84:
		h.both("advance", func(m machine) string { return m.advance(h.now) })
	case pick < 88:
		label := h.some(anyone)
		h.both("expire "+label, func(m machine) string { return m.expire(label, h.now) })
	case pick < 94:
		label := h.some(anyone)
		h.both("beat "+label, func(m machine) string { return m.beat(label, h.now) })
	case pick < 96:
		h.both("flush", func(m machine) string { return m.flush(h.now) })
	case pick < 98:
		h.both("settled", machine.settled)
	case pick == 98 && h.rng.IntN(20) == 0:
		// Whoever clears does not write any more.
		h.both("clear", func(m machine) string { return m.clear("Shutdown") })
		h.both("kill", func(m machine) string { return m.kill(h.now) })
	case pick == 98:
		h.others("list", h.w.list())
	case h.rng.IntN(2) == 0:
		h.both("kill", func(m machine) string { return m.kill(h.now) })
		// What is not known to the new process can be anything.
		for _, key := range h.keys {
			h.put(key)
		}
		if h.rng.IntN(3) > 0 {
			h.others("list", h.w.list())
			h.restoreIn = 1 + h.rng.IntN(40)
		}
	case h.rng.IntN(2) == 0:
		if all := h.w.all(""); len(all) > 0 {
			at := oneOf(h.rng, all...)
			h.others(fmt.Sprintf("delete %s %s", at.key, at.name), h.w.delete(at.key, at.name))
		}
	default:
		h.restoreIn = 1
	}
}

// next begins the write that the schedule chooses.
func (h *history) next() {
	var label, text string
	got, want := h.each(func() string {
		label, text = h.w.next(h.now)
		return text
	}, func() string {
		if label == "" {
			return ""
		}
		return h.o.begin(label, h.now)
	})
	h.compare("next "+label, got, want)
}

// respond ends a request.
func (h *history) respond(label string, kind Kind) {
	end := func(what string, respond func() response) {
		got, want := h.end(label, h.now, respond)
		h.compare(fmt.Sprintf("%s %s %s", what, label, kind), got, want)
	}
	answer := func() response { return h.w.answer(label, h.now) }
	switch outcome := h.rng.IntN(20); {
	case kind == Look && outcome >= 12, outcome == 6:
		end("refuse", func() response { return h.w.refuse(label, "Malformed", h.now) })
	case outcome < 2:
		h.w.vanish(label)
		end("gone", answer)
	case outcome < 6:
		how := oneOf(h.rng, append(failures, lost, lost)...)
		end(string(how), func() response { return h.w.fail(label, how, h.now) })
	default:
		end("answer", answer)
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
	h.others(fmt.Sprintf("meddle %s %s x%d %s", at.key, at.name, n, state), h.w.meddle(at.key, at.name, n, state, h.now))
}

// put stores Events under the names of a key that nobody here has created.
func (h *history) put(key string) {
	age := oneOf(h.rng, time.Minute, 6*time.Minute, 40*time.Minute, 2*time.Hour)
	first := h.now + time.Minute/2 - time.Duration(h.rng.Int64N(int64(age)))
	unique := naming{unique: true, first: micros(first)}
	for _, name := range []naming{unique, {}} {
		k, _ := h.w.key(key)
		if _, stands := h.w.remote.events[name.of(k)]; stands || h.rng.IntN(2) == 0 {
			continue
		}
		if h.rng.IntN(4) == 0 {
			what := oneOf(h.rng, strangenesses...)
			h.w.strange(key, name, what, h.now)
			h.others(fmt.Sprintf("strange %s %s %s", key, name, what), h.w.server(key))
			continue
		}
		at := earlier{name: name, count: 1, first: first, last: first}
		at.state = oneOf(h.rng, series.Singleton, series.Ongoing, series.Ongoing, series.Finished, series.Unknown)
		if !name.unique && h.rng.IntN(2) == 0 {
			at.first -= time.Duration(h.rng.Int64N(int64(20 * time.Minute)))
			at.last = at.first
			if h.rng.IntN(2) == 0 {
				next := oneOf(h.rng, unique, unique, unique, naming{unique: true, first: micros(first - 1e6)}, naming{})
				at.successor = &next
			}
		}
		if at.state != series.Singleton {
			at.count = 2 + h.rng.IntN(10)
			at.last += time.Duration(h.rng.Int64N(int64(h.now-at.first) + int64(2*time.Minute)))
		}
		h.w.stand(key, at)
		h.others(fmt.Sprintf("stand %s %s", key, name), h.w.server(key))
	}
}
