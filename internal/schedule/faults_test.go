package schedule

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/workload"
)

// The simulation: namespaces, items, and a server whose responses are a function of namespace,
// object, time, and chance. It measures how long the first Warnings of healthy namespaces wait.
// To see what a constant does, change it and run
//
//	go test -run TestFaults -v ./internal/schedule

// fault is how a namespace responds, from begin to end.
type fault struct {
	Answer
	takes      time.Duration // zero: the usual time
	share      float64       // of the requests; zero: all
	begin, end time.Duration // since the start; zero: always, and for ever
}

func (f *fault) hits(now time.Duration, rng *rand.Rand) bool {
	return now >= f.begin && (f.end == 0 || now < f.end) && (f.share == 0 || rng.Float64() < f.share)
}

var (
	fails     = fault{Answer: Answer{Outcome: Troubled}}
	denies    = fault{Answer: Answer{Outcome: Denied}}
	limits    = fault{Answer: Answer{Outcome: PushedBack}}
	hangs     = fault{Answer: Answer{Outcome: Troubled}, takes: 30 * time.Second}
	neverEnds = fault{Answer: Answer{Outcome: Troubled}, takes: 1000 * time.Hour}
)

func limitsFor(d time.Duration) fault {
	return fault{Answer: Answer{Outcome: PushedBack, Pause: d}}
}

// simulation is a world with faults.
type simulation struct {
	*world
	rng    *rand.Rand
	start  time.Duration
	faults map[string][]fault // by namespace; those of "" concern all
	marked []*item            // Warnings to measure
	loops  []*item
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &simulation{world: newWorld(t, places), rng: rng, faults: map[string][]fault{}}
	s.Schedule = New[*item](places, time.Hour, func(d time.Duration) time.Duration { return d + time.Duration(rng.Float64()*float64(d/5)) })
	s.start, s.qps = s.now, 50
	current := map[*item]*fault{}
	s.takes = func(it *item) time.Duration {
		delete(current, it)
		for _, namespace := range []string{"", it.namespace} {
			for i, f := range s.faults[namespace] {
				if f.hits(s.now-s.start, rng) && !it.good {
					current[it] = &s.faults[namespace][i]
					return max(f.takes, latency)
				}
			}
		}
		return latency
	}
	s.answer = func(it *item) Answer {
		if f := current[it]; f != nil {
			return f.Answer
		}
		return Answer{Outcome: Written}
	}
	return s
}

// warn makes a Warning of a namespace ready, which is measured.
func (s *simulation) warn(namespace string) {
	it := s.add(namespace, 1)[0]
	s.marked = append(s.marked, it)
}

// loop adds a series that is written twice, and then each half hour.
func (s *simulation) loop(namespace string) {
	it := s.add(namespace, 1)[0]
	it.beat = 30 * time.Minute
	s.loops = append(s.loops, it)
}

// at runs until a time since the start.
func (s *simulation) at(since time.Duration) { s.run(s.start + since) }

// measure returns how long the Warnings have waited, the shortest first, and how many were not
// written.
func (s *simulation) measure() (waits []time.Duration, missing int) {
	for _, it := range s.marked {
		if it.passed == 0 {
			missing++
		} else {
			waits = append(waits, it.passed-it.began)
		}
	}
	slices.Sort(waits)
	return waits, missing
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func (s *simulation) String() string {
	waits, missing := s.measure()
	return fmt.Sprintf("p50 %v, p99 %v, worst %v of %d; %d missing; %d requests", quantile(waits, 0.5).Round(time.Millisecond),
		quantile(waits, 0.99).Round(time.Millisecond), quantile(waits, 1).Round(time.Millisecond), len(waits), missing, s.requests)
}

func names(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}

// sicken adds namespaces with a fault, each with a loop.
func (s *simulation) sicken(n int, f fault) (namespaces []string) {
	namespaces = names("sick-", n)
	for _, namespace := range namespaces {
		s.faults[namespace] = []fault{f}
		s.loop(namespace)
	}
	return namespaces
}

// pass lets time pass, while so many new objects a minute appear in each of some namespaces.
func (s *simulation) pass(d time.Duration, namespaces []string, perMinute int) {
	for end := s.now + d; s.now < end; {
		for _, namespace := range namespaces {
			s.add(namespace, 1)
		}
		s.run(min(end, s.now+time.Minute/time.Duration(max(1, perMinute))))
	}
}

// requireUnharmed requires that a Warning a minute of a namespace is written within a second, while
// new objects appear in the sick ones.
func (s *simulation) requireUnharmed(namespace string, minutes int, sick []string) {
	for range minutes {
		s.warn(namespace)
		s.pass(time.Minute, sick, 1)
	}
	waits, missing := s.measure()
	require.Zero(s.t, missing)
	require.Less(s.t, quantile(waits, 1), time.Second)
	s.t.Log(s)
}

// A blip of all namespaces, beside some that fail for good: whoever was healthy is well again
// soon after.
func TestFaultsBlip(t *testing.T) {
	for name, f := range map[string]fault{"500": fails, "429": limits, "429 for 30 s": limitsFor(30 * time.Second), "403": denies, "hang": hangs} {
		for _, sick := range workload.Some(200, 0, 5) {
			for _, blip := range []time.Duration{time.Second, 5 * time.Second, 30 * time.Second} {
				for _, each := range []int{1, 20} {
					t.Run(fmt.Sprintf("%s/%d/%v/%d", name, sick, blip, each), func(t *testing.T) {
						t.Parallel()
						s := newSimulation(t, 1)
						s.pass(2*time.Hour, append(s.sicken(sick, f), names("healthy-", 20)...), 1)
						begin := s.now - s.start
						s.faults[""] = []fault{{Answer: Answer{Outcome: Troubled}, begin: begin, end: begin + blip}}
						for i := range 20 * each {
							s.at(begin + time.Duration(i)*blip/time.Duration(20*each))
							s.warn(fmt.Sprint("healthy-", i%20))
						}
						end := s.start + begin + blip
						s.run(end + time.Hour)
						after := time.Duration(0)
						for _, it := range s.marked {
							require.NotZero(t, it.passed, "not written")
							after = max(after, it.passed-end)
						}
						most := max(10*time.Second, blip+5*time.Second)
						if each > 1 && blip == time.Second {
							most = 14 * time.Second // 400 events in a second, at 50 requests a second
						}
						assert.LessOrEqual(t, after, most)
						t.Log(after.Round(time.Millisecond), s)
					})
				}
			}
		}
	}
}

// A blip of all namespaces soon after some have begun to fail for good, or an outage long after that:
// neither the new failures of others nor the old ones hold up those who are well again.
func TestFaultsBesideThoseOfAnotherAge(t *testing.T) {
	for name, f := range map[string]fault{"500": fails, "429 for 30 s": limitsFor(30 * time.Second), "403": denies, "hang": hangs} {
		for _, sick := range workload.Some(200, 5, 20) {
			for delay, outages := range map[time.Duration][]time.Duration{
				30 * time.Second: {5 * time.Second, 30 * time.Second}, 3 * time.Minute: {5 * time.Second, 30 * time.Second}, 2 * time.Hour: {6 * time.Minute, 30 * time.Minute},
			} {
				for _, outage := range outages {
					t.Run(fmt.Sprint(name, "/", sick, "/", delay, "/", outage), func(t *testing.T) {
						t.Parallel()
						s := newSimulation(t, 1)
						s.sicken(sick, f)
						s.at(delay)
						s.faults[""] = []fault{{Answer: fails.Answer, begin: delay, end: delay + outage}}
						for i := range 20 {
							s.at(delay + time.Duration(i)*min(outage, 30*time.Second)/20)
							s.warn(fmt.Sprint("healthy-", i))
						}
						s.at(delay + outage + min(10*time.Second+2*outage, 2*time.Minute))
						_, missing := s.measure()
						assert.Zero(t, missing)
						t.Log(s)
					})
				}
			}
		}
	}
}

// Namespaces fail for good. Others notice nothing.
func TestFaultsOfOthers(t *testing.T) {
	for name, f := range map[string]fault{
		"500": fails, "403": denies, "429": limits, "429 for 1 s": limitsFor(time.Second), "429 for 30 s": limitsFor(30 * time.Second),
		"429 for 600 s": limitsFor(600 * time.Second), "hang": hangs, "hang for ever": neverEnds,
	} {
		for _, sick := range workload.Some(200, 1, 5, 20) {
			t.Run(fmt.Sprint(name, "/", sick), func(t *testing.T) {
				t.Parallel()
				s := newSimulation(t, 1)
				namespaces := s.sicken(sick, f)
				s.at(10 * time.Minute) // that all hang at once is the subject of TestFaultsOfManyAtOnce
				for i := range 9000 {
					s.warn(fmt.Sprint("healthy-", i%50))
					if i%100 == 0 {
						s.add(namespaces[s.rng.IntN(sick)], 1)
					}
					s.run(s.now + 2*time.Second)
				}
				waits, missing := s.measure()
				assert.Zero(t, missing)
				assert.LessOrEqual(t, quantile(waits, 1), 5*time.Second)
				assert.LessOrEqual(t, quantile(waits, 0.99), 10*time.Millisecond)
				t.Log(s)
			})
		}
	}
}

// The server pushes back a share of all requests, as API Priority and Fairness does.
func TestFaultsOfAShare(t *testing.T) {
	for _, tt := range []struct {
		share      float64
		p50, worst time.Duration
	}{{0.05, latency, 16 * time.Second}, {0.2, latency, time.Minute}, {0.5, time.Second * 2, 10 * time.Minute}, {0.8, 2 * time.Minute, 4 * time.Hour}} {
		for _, loops := range workload.Some(100, 2000) {
			for _, after := range []time.Duration{0, time.Second} {
				t.Run(fmt.Sprint(tt.share, "/", loops, "/", after), func(t *testing.T) {
					t.Parallel()
					s := newSimulation(t, 1)
					s.faults[""] = []fault{{Answer: Answer{Outcome: PushedBack, Pause: after}, share: tt.share}}
					for i := range loops {
						s.loop(fmt.Sprint(i % 50))
					}
					s.at(5 * time.Minute) // the first writes of the loops take their time
					for i := range 10_000 {
						s.warn(fmt.Sprint(i % 50))
						s.run(s.now + 6*time.Hour/10_000)
					}
					waits, _ := s.measure()
					assert.LessOrEqual(t, quantile(waits, 0.5), tt.p50)
					assert.LessOrEqual(t, quantile(waits, 1), tt.worst)
					t.Log(s)
				})
			}
		}
	}
}

// An outage of half an hour costs at most 28 requests for each namespace, and everything is written soon after.
func TestFaultsOutage(t *testing.T) {
	for name, f := range map[string]fault{"500": fails, "429": limits, "429 for 1 s": limitsFor(time.Second)} {
		for _, tt := range []struct{ items, namespaces, most int }{{200, 1, 230}, {200, 10, 490}, {200, 20, 770}, {200, 50, 1610}, {200, 200, 5800}, {1000, 1000, 28_000}} {
			t.Run(fmt.Sprint(name, "/", tt.namespaces), func(t *testing.T) {
				t.Parallel()
				s := newSimulation(t, 1)
				f := f
				f.end = 30 * time.Minute
				s.faults[""] = []fault{f}
				for i := range tt.items {
					s.warn(fmt.Sprint(i % tt.namespaces))
				}
				s.at(30 * time.Minute)
				requests := s.requests
				assert.LessOrEqual(t, requests, tt.most)
				s.at(time.Hour)
				waits, missing := s.measure()
				assert.Zero(t, missing)
				after := quantile(waits, 1) - 30*time.Minute
				assert.LessOrEqual(t, after, RetryMax*6/5)
				t.Log(requests, "requests; all written after", after)
			})
		}
	}
}

// Many namespaces begin to hang at the same moment.
func TestFaultsOfManyAtOnce(t *testing.T) {
	for sick, most := range map[int]time.Duration{150: 2 * time.Second, 1000: 24 * time.Second} {
		t.Run(fmt.Sprint(sick), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, 1)
			namespaces := s.sicken(sick, fault{Answer: hangs.Answer, takes: hangs.takes, begin: time.Hour, end: 2 * time.Hour})
			s.at(time.Hour)
			for _, namespace := range namespaces {
				s.add(namespace, 2)
			}
			for range 600 {
				s.warn(fmt.Sprint("healthy-", s.rng.IntN(20)))
				s.run(s.now + time.Second)
			}
			s.at(3 * time.Hour)
			waits, missing := s.measure()
			assert.Zero(t, missing)
			assert.LessOrEqual(t, quantile(waits, 1), most)
			pending, _, _ := s.Backlog(s.now)
			assert.Zero(t, pending)
			t.Log(s)
		})
	}
}

// Many namespaces are slow, and pass. Others notice little.
func TestFaultsManyAreSlow(t *testing.T) {
	for _, slow := range workload.Some(100, 30) {
		s := newSimulation(t, 1)
		sick := s.sicken(slow, fault{Answer: Answer{Outcome: Written}, takes: 20 * time.Second})
		for range 20 {
			s.warn("healthy")
			s.pass(time.Minute, sick, 20)
		}
		waits, missing := s.measure()
		assert.Zero(t, missing)
		assert.Less(t, quantile(waits, 1), time.Second)
		t.Log(s)
	}
}

// Namespaces are slow, and have a backlog. Others do not stand behind it.
func TestFaultsSlowBacklog(t *testing.T) {
	for _, takes := range []time.Duration{600 * time.Millisecond, 700 * time.Millisecond, 800 * time.Millisecond} {
		s := newSimulation(t, 1)
		for _, namespace := range s.sicken(20, fault{Answer: Answer{Outcome: Written}, takes: takes}) {
			s.add(namespace, 200)
		}
		for range 60 {
			s.warn("healthy")
			s.run(s.now + time.Second)
		}
		waits, missing := s.measure()
		assert.Zero(t, missing, takes)
		assert.Less(t, quantile(waits, 1), time.Second, takes)
		t.Log(s)
	}
}

// A sink does not return in many namespaces, each with a new object a minute. Others notice nothing.
func TestFaultsManyHangForEver(t *testing.T) {
	s := newSimulation(t, 1)
	sick := s.sicken(200, neverEnds)
	s.pass(10*time.Minute, sick, 1)
	s.requireUnharmed("healthy", 60, sick)
}

// requireTurns requires that no item waits while another one has two turns.
func requireTurns(t *testing.T, items []*item) {
	for _, waits := range items {
		for _, turn := range waits.turns {
			for _, other := range items {
				if i, _ := slices.BinarySearchFunc(other.turns, turn.ready+1, func(t turnOf, at time.Duration) int { return cmp.Compare(t.sent, at) }); i+1 < len(other.turns) {
					require.GreaterOrEqual(t, other.turns[i+1].sent, turn.sent)
				}
			}
		}
	}
}

// A namespace takes long for each request. Its series take turns.
func TestFaultsSlowNamespace(t *testing.T) {
	s := newSimulation(t, 1)
	s.faults["slow"] = []fault{{Answer: Answer{Outcome: Written}, takes: 20 * time.Second}}
	var slow []*item
	for i := range 600 {
		it := s.add("slow", 1)[0]
		it.beat = time.Minute
		slow = append(slow, it)
		s.run(s.now + 3*time.Second)
		s.warn(fmt.Sprint("healthy-", i%20))
		s.run(s.now + 3*time.Second)
	}
	requireTurns(t, slow)
	waits, missing := s.measure()
	assert.LessOrEqual(t, missing, 1)
	assert.LessOrEqual(t, quantile(waits, 1), 10*time.Millisecond)
	t.Log(s)
}

// Faults of random kinds, namespaces and times. Healthy namespaces notice nothing but faults of
// all, and everything is written after the last fault.
func TestFaultsMixed(t *testing.T) {
	for seed := range workload.Seeds(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newSimulation(t, seed)
			namespaces := names("ns-", 50)
			last := time.Duration(0)
			var ofAll []fault
			for i := range 60 {
				f := []fault{fails, denies, limits, hangs, limitsFor(time.Second), limitsFor(10 * time.Second), {Answer: Answer{Outcome: PushedBack}, share: 0.5},
					{Answer: Answer{Outcome: Troubled}, share: 0.3}, {Answer: Answer{Outcome: Refused}, share: 0.3}}[s.rng.IntN(9)]
				f.begin = time.Duration(s.rng.Int64N(int64(5 * time.Hour)))
				f.end = f.begin + time.Duration(s.rng.Int64N(int64(time.Hour)))
				name := namespaces[s.rng.IntN(30)] // 20 stay healthy
				if i < 3 {
					name, f.end = "", f.begin+(f.end-f.begin)/12
					ofAll = append(ofAll, f)
				} else {
					last = max(last, f.end)
				}
				s.faults[name] = append(s.faults[name], f)
			}
			for i := range 300 {
				s.loop(namespaces[i%50])
			}
			for s.now < s.start+6*time.Hour {
				s.warn(namespaces[s.rng.IntN(50)])
				s.run(s.now + time.Duration(s.rng.Int64N(int64(10*time.Second))))
			}
			s.run(s.now + time.Hour)
			worst, late := time.Duration(0), time.Duration(0)
			for _, it := range s.marked {
				require.NotZero(t, it.passed)
				began, settled := it.began-s.start, true
				for _, f := range ofAll {
					settled = settled && (began < f.begin-time.Minute || began > f.end+3*time.Minute)
				}
				if isHealthy := len(s.faults[it.namespace]) == 0; isHealthy && settled {
					worst = max(worst, it.passed-it.began)
				}
				late = max(late, it.passed-s.start-max(last, began))
			}
			assert.LessOrEqual(t, worst, 5*time.Second)
			assert.LessOrEqual(t, late, 40*time.Minute)
			t.Log("worst of healthy", worst, "after the last fault", late, strings.TrimSpace(s.String()))
		})
	}
}

// A fleet of processes, each with a loop in 30 namespaces, loses the server for half an hour. The
// server gets few requests meanwhile, and not all at once when it is back.
func TestFaultsFleet(t *testing.T) {
	const processes = 100
	sent := make([]int, 35*60)
	for seed := range uint64(processes) {
		s := newSimulation(t, seed)
		for _, namespace := range names("", 30) {
			s.loop(namespace)
		}
		s.at(time.Duration(10+s.rng.IntN(50)) * time.Second) // they did not start together
		s.faults[""] = []fault{{Answer: fails.Answer, begin: s.now - s.start, end: s.now - s.start + 30*time.Minute}}
		begin := s.now
		for i := range sent {
			for _, it := range s.loops { // each has something to write
				if it.passed > 0 && it.passed < begin {
					s.Ready(it, s.now, s.now)
				}
			}
			before := s.requests
			s.run(begin + time.Duration(i+1)*time.Second)
			sent[i] += s.requests - before
		}
		pending, _, _ := s.Backlog(s.now)
		assert.Zero(t, pending)
	}
	rate := func(from, to int) float64 {
		n := 0
		for _, requests := range sent[from:to] {
			n += requests
		}
		return float64(n) / float64(to-from) / processes
	}
	during, after, peak := rate(60, 1800), rate(1800, 1860), float64(slices.Max(sent[1800:]))/processes
	t.Logf("requests a second of each process: %.3f in the outage, %.2f in the minute after it, at most %.2f", during, after, peak)
	assert.Less(t, during, 0.35)
	assert.Less(t, after, 1.0)
	assert.Less(t, peak, 1.0)
}

// The latency of the server rises to 20 seconds and falls again, within an hour. Nothing is lost.
func TestFaultsLatency(t *testing.T) {
	s := newSimulation(t, 1)
	s.takes = func(*item) time.Duration {
		share := 1 - math.Abs((s.now-s.start-time.Hour).Minutes())/30
		return latency + time.Duration(max(0, share)*float64(20*time.Second))
	}
	s.answer = func(*item) Answer { return Answer{Outcome: Written} }
	for i := range 200 {
		s.loop(fmt.Sprint(i % 50))
	}
	for s.now < s.start+2*time.Hour {
		s.warn(fmt.Sprint(s.rng.IntN(50)))
		s.run(s.now + 2*time.Second)
	}
	s.run(s.now + time.Minute)
	waits, missing := s.measure()
	assert.Zero(t, missing)
	assert.LessOrEqual(t, quantile(waits, 1), 50*time.Second) // its response takes 20 of them
	t.Log(s)
}

// More new series than QPS permits, of which a few are pushed back, for hours. Those that run are
// written all the same.
func TestFaultsOverload(t *testing.T) {
	s := newSimulation(t, 1)
	s.qps = 2
	for range 5 {
		s.loop("ns")
	}
	s.at(time.Minute)
	s.faults["ns"] = []fault{{Answer: limits.Answer, share: 0.05}}
	s.pass(3*time.Hour, []string{"ns"}, 180)
	for _, it := range s.loops {
		assert.Less(t, s.now-it.passed, 2*time.Hour)
	}
}

// Of the objects that appear all the time in some namespaces, one a minute is permitted. It is written at once.
func TestFaultsOfNewObjects(t *testing.T) {
	for name, f := range map[string]fault{"500": fails, "403": denies, "429": limits, "422": {Answer: Answer{Outcome: Refused}}} {
		for _, tt := range []struct{ namespaces, aMinute int }{{1, 60}, {1, 1200}, {10, 60}, {10, 1200}, {50, 60}, {50, 1200}} {
			t.Run(fmt.Sprint(name, "/", tt), func(t *testing.T) {
				t.Parallel()
				s := newSimulation(t, 1)
				s.qps = max(50, float64(2*tt.namespaces*tt.aMinute/60))
				sick := s.sicken(tt.namespaces, f)
				for range 10 {
					for _, namespace := range sick {
						s.warn(namespace)
						s.marked[len(s.marked)-1].good = true
					}
					s.pass(time.Minute, sick, tt.aMinute)
				}
				waits, missing := s.measure()
				assert.Zero(t, missing)
				assert.LessOrEqual(t, quantile(waits, 1), time.Second)
				t.Log(s)
			})
		}
	}
}

// A burst of new Warnings in some namespaces, or more of them than the rate permits, is written as fast as that. Others
// notice little.
func TestFaultsOfABurst(t *testing.T) {
	for _, tt := range []struct{ namespaces, burst, each int }{{1, 4000, 0}, {20, 200, 0}, {20, 1000, 0}, {1, 0, 100}} {
		s := newSimulation(t, 1)
		var burst []*item
		for _, name := range names("burst-", tt.namespaces) {
			burst = append(burst, s.add(name, tt.burst)...)
		}
		for i := range 600 {
			s.warn(fmt.Sprint("other-", i%5))
			s.add("burst-0", tt.each)
			s.run(s.now + time.Second)
			if i == 85 && len(burst) == 4000 {
				for _, it := range burst {
					assert.NotZero(t, it.passed)
				}
			}
		}
		waits, missing := s.measure()
		assert.Zero(t, missing)
		assert.LessOrEqual(t, quantile(waits, 1), time.Second)
		t.Log(s)
	}
}
