package workload

import (
	"iter"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
)

// Loop is a loop that emits the same event again and again.
type Loop struct {
	// Name names the loop in test output. It is unique.
	Name string
	// Longest is the longest time between two occurrences. Jitter and the time that the
	// work itself takes can add up to a tenth.
	Longest time.Duration
	// Gaps begins the loop with an occurrence. Each call of next returns the time from one
	// occurrence to the next one. Equal seeds have equal times.
	Gaps func(seed uint64) (next func() time.Duration)
}

// Loops returns all loops.
func Loops() []Loop {
	return []Loop{
		{"hot loop", 100 * time.Millisecond, every(100*time.Millisecond, 0)},
		{"7 minutes", 7 * time.Minute, every(7*time.Minute, 0)},
		{"10 minutes", 10 * time.Minute, every(10*time.Minute, 0)},
		{"1,000 seconds", 1000 * time.Second, every(1000*time.Second, 0)},
		{"workqueue", queueMax, retries(100 * time.Millisecond)},
		// A reconciliation that calls a slow service.
		{"slow reconciliation", queueMax, retries(10 * time.Second)},
		{"back-off with jitter", queueMax, jittered},
		{"crash loop of 5 seconds", crashMax + 5*time.Second, crashes(5 * time.Second)},
		{"crash loop of 2 minutes", crashMax + 2*time.Minute, crashes(2 * time.Minute)},
		{"crash loop of 12 minutes", 12 * time.Minute, crashes(12 * time.Minute)},
		{"Flux", 10 * time.Minute, every(10*time.Minute, 0.1)},
		// https://argo-cd.readthedocs.io/en/stable/faq/: every 2 minutes, and up to one more.
		{"Argo CD", 3 * time.Minute, every(150*time.Second, 0.2)},
		{"bursts", 10 * time.Minute, bursts},
		{"flapping node", 6 * time.Minute, flapping},
		{"CronJob", 15 * time.Minute, cron},
		{"resync", time.Hour, every(time.Hour, 0)},
	}
}

// Times returns the times of the occurrences without end. The first is zero. Each
// iteration begins anew.
func (l *Loop) Times(seed uint64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		next := l.Gaps(seed)
		for at := time.Duration(0); yield(at); at += next() {
		}
	}
}

// Until returns the times of l before end.
func (l *Loop) Until(end time.Duration, seed uint64) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for at := range l.Times(seed) {
			if at >= end || !yield(at) {
				return
			}
		}
	}
}

// Play calls occur at each occurrence of l before end, and look at the times 0, interval,
// 2 × interval and so on before end, after an occurrence at that time. In between it calls
// sleep, and at last until end.
func (l *Loop) Play(end time.Duration, seed uint64, interval time.Duration, sleep func(time.Duration), occur, look func(at time.Duration)) {
	var now, next time.Duration // next is that of a look
	until := func(at time.Duration) {
		sleep(at - now)
		now = at
	}
	looks := func(before time.Duration) {
		for ; next < before; next += interval {
			until(next)
			look(next)
		}
	}
	for at := range l.Until(end, seed) {
		looks(at)
		until(at)
		occur(at)
	}
	looks(end)
	until(end)
}

// from returns a Gaps that is random.
func from(begin func(rng *rand.Rand) (next func() time.Duration)) func(uint64) func() time.Duration {
	return func(seed uint64) func() time.Duration { return begin(rand.New(rand.NewPCG(seed, 0))) }
}

// every is a loop with a fixed interval, with a jitter in either direction. Flux has an
// interval of 10 minutes in its examples, and --interval-jitter-percentage.
func every(interval time.Duration, jitter float64) func(uint64) func() time.Duration {
	return from(func(rng *rand.Rand) func() time.Duration {
		return func() time.Duration {
			return interval + time.Duration(float64(interval)*jitter*(2*rng.Float64()-1))
		}
	})
}

// The delays of workqueue.DefaultTypedControllerRateLimiter, which controller-runtime
// uses as well. It also limits the rate of all retries of a queue, which reads the clock.
const (
	queueFirst = 5 * time.Millisecond
	queueMax   = 1000 * time.Second
)

// retries is an error that never goes away. Each reconciliation takes half of work to
// work.
func retries(work time.Duration) func(uint64) func() time.Duration {
	return from(func(rng *rand.Rand) func() time.Duration {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](queueFirst, queueMax)
		return func() time.Duration {
			return limiter.When("") + work/2 + time.Duration(rng.Int64N(int64(work/2)))
		}
	})
}

// jittered is a wait.Backoff as programs write it. The jitter of its own has no seed.
var jittered = from(func(rng *rand.Rand) func() time.Duration {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 32, Cap: queueMax}
	return func() time.Duration {
		return time.Duration(float64(backoff.Step()) * (1 + 0.05*rng.Float64()))
	}
})

// The delays of the kubelet before it starts a container again (MaxCrashLoopBackOff).
const (
	crashFirst = 10 * time.Second
	crashMax   = 5 * time.Minute
)

// crashes is the event Started of a container that runs for a while and crashes. The
// kubelet forgets the delay of a container that has run for ten minutes.
func crashes(run time.Duration) func(uint64) func() time.Duration {
	return from(func(*rand.Rand) func() time.Duration {
		clock := testingclock.NewFakeClock(time.Unix(0, 0))
		backoff := flowcontrol.NewFakeBackOff(crashFirst, crashMax, clock)
		return func() time.Duration {
			clock.Step(run)
			crashed, delay := clock.Now(), time.Duration(0)
			if backoff.IsInBackOffSince("", crashed) {
				delay = backoff.Get("")
			}
			clock.Step(delay)
			backoff.Next("", crashed)
			return run + delay
		}
	})
}

// bursts is ten occurrences in a second, every ten minutes.
var bursts = from(func(*rand.Rand) func() time.Duration {
	n := 0
	return func() time.Duration {
		if n++; n%10 == 0 {
			return 10*time.Minute - 900*time.Millisecond
		}
		return 100 * time.Millisecond
	}
})

// flapping is the event NodeNotReady of a node that stops again 3 to 6 minutes later.
var flapping = from(func(rng *rand.Rand) func() time.Duration {
	return func() time.Duration { return 3*time.Minute + time.Duration(rng.Int64N(int64(3*time.Minute))) }
})

// cron is a CronJob that fails every 15 minutes. Its Job gets its Pod up to ten seconds
// later.
var cron = from(func(rng *rand.Rand) func() time.Duration {
	n, latest := 0, time.Duration(0)
	return func() time.Duration {
		n++
		before := latest
		latest = time.Duration(n)*15*time.Minute + time.Duration(rng.Int64N(int64(10*time.Second)))
		return latest - before
	}
})
