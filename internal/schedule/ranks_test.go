package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// In each of many namespaces, one object fails for good, and others pass. One without other traffic
// fails for a while, or hangs. Its Warning is written all the same.
func TestFaultsBesideBadObjects(t *testing.T) {
	for _, takes := range []time.Duration{latency, 10 * time.Second} {
		for outage, most := range map[time.Duration]time.Duration{30 * time.Second: 75 * time.Second, 20 * time.Minute: 90 * time.Minute} {
			t.Run(fmt.Sprint(takes, "/", outage), func(t *testing.T) {
				t.Parallel()
				s := newSimulation(t, 1)
				all := names("ns-", 300)
				for _, name := range all {
					s.faults[name] = []fault{{Answer: Answer{Outcome: Troubled}, end: time.Second}}
					s.loop(name)
				}
				answer := s.answer
				s.answer = func(it *item) Answer {
					if it.beat > 0 {
						return Answer{Outcome: Troubled}
					}
					return answer(it)
				}
				tick := func(d time.Duration) {
					for end := s.now + d; s.now < end; s.run(s.now + 200*time.Millisecond) {
						s.add(all[s.rng.IntN(len(all))], 1)
					}
				}
				tick(time.Hour)
				begin := s.now - s.start
				s.faults["victim"] = []fault{{Answer: Answer{Outcome: Troubled}, takes: takes, begin: begin, end: begin + outage}}
				s.warn("victim")
				tick(most)
				_, missing := s.measure()
				assert.Zero(t, missing)
				t.Log(s)
			})
		}
	}
}

// Requests take long and fail for a while, beside namespaces that fail for good. There is no other
// traffic.
func TestFaultsBlipThatHangs(t *testing.T) {
	for name, f := range map[string]fault{"500": fails, "429": limits, "403": denies, "hang": hangs} {
		for _, sick := range []int{5, 200} {
			t.Run(fmt.Sprint(name, "/", sick), func(t *testing.T) {
				t.Parallel()
				s := newSimulation(t, 1)
				s.sicken(sick, f)
				s.at(2 * time.Hour)
				s.faults["healthy"] = []fault{{Answer: Answer{Outcome: Troubled}, takes: 10 * time.Second, begin: s.now - s.start, end: s.now - s.start + 5*time.Second}}
				s.warn("healthy")
				s.run(s.now + 25*time.Second)
				_, missing := s.measure()
				assert.Zero(t, missing)
			})
		}
	}
}

// A request of a namespace never ends, beside many that hang. After a minute, that is no news.
func TestFaultsOneHangsForEver(t *testing.T) {
	s := newSimulation(t, 1)
	sick := s.sicken(200, hangs)
	s.at(10 * time.Minute)
	s.faults["victim"] = []fault{{Answer: fails.Answer, takes: neverEnds.takes, end: 10*time.Minute + time.Second}}
	s.add("victim", 1)
	s.pass(10*time.Minute, sick, 1)
	s.requireUnharmed("victim", 120, sick)
}

// A flush releases all that has failed for long. Healthy namespaces notice nothing.
func TestFaultsFlush(t *testing.T) {
	for name, f := range map[string]fault{"500": fails, "429": limits, "403": denies} {
		for _, sick := range []int{200, 1200} {
			t.Run(fmt.Sprint(name, "/", sick), func(t *testing.T) {
				t.Parallel()
				s := newSimulation(t, 1)
				for _, namespace := range s.sicken(sick, f) {
					s.add(namespace, 2)
				}
				s.at(20 * time.Minute)
				for _, name := range names("sick-", sick) {
					items := s.Failed(name, s.now, many)
					for _, it := range items {
						s.Release(it, s.now)
					}
				}
				for i := range 60 {
					s.warn(fmt.Sprint("healthy-", i))
					s.run(s.now + time.Second)
				}
				waits, missing := s.measure()
				assert.Zero(t, missing)
				assert.Less(t, quantile(waits, 1), time.Second)
				t.Log(s)
			})
		}
	}
}
