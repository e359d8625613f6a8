package events

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

const (
	maxWindow  = 36 * time.Minute // the default
	rhythmEnd  = 4 * time.Hour    // each loop runs for so long, and then stops
	rhythmLook = 30 * time.Second // a user looks this often
)

// rhythm is a loop on a server, and the process that emits its events.
type rhythm struct {
	workload.Loop
	*world
	on      lister
	seed    uint64
	begin   time.Time
	times   []time.Duration
	longest time.Duration // between two occurrences
	starts  int           // of processes
}

// eachRhythm runs a subtest in virtual time for each loop that is one series: the time
// between two occurrences is at most 1,000 seconds.
func eachRhythm(t *testing.T, test func(t *testing.T, r *rhythm)) {
	t.Helper()
	for _, loop := range workload.Loops() {
		seeds := workload.Seeds(4)
		if loop.Longest < time.Second {
			seeds = 1 // it takes as long as all others
		}
		for seed := range seeds {
			if loop.Longest <= 1000*time.Second {
				runBubble(t, fmt.Sprintf("%s, seed %d", loop.Name, seed), func(t *testing.T) { test(t, newRhythm(loop, seed)) })
			}
		}
	}
}

func newRhythm(loop workload.Loop, seed uint64) *rhythm {
	r := &rhythm{Loop: loop, on: newLister(), seed: seed, begin: time.Now(), times: slices.Collect(loop.Until(rhythmEnd, seed))}
	r.on.api.TTL = time.Hour
	for i := range r.times[1:] {
		r.longest = max(r.longest, r.times[i+1]-r.times[i])
	}
	return r
}

// start starts the process that emits the events from now on.
func (r *rhythm) start(t *testing.T, opts Options) {
	r.world = startOn(t, r.on.server, r.on, opts)
	r.starts++
}

// between returns the time of a random look.
func (r *rhythm) between(from, to time.Duration) time.Duration {
	from, to = from/rhythmLook, to/rhythmLook
	return rhythmLook * (from + 1 + time.Duration(rand.New(rand.NewPCG(r.seed, 1)).Int64N(int64(to-from))))
}

// run emits the events for four hours. At each look there is one Event, and it says
// Ongoing from the second occurrence on. change is called before each look.
func (r *rhythm) run(t *testing.T, change func(now time.Duration)) {
	t.Helper()
	known := r.times[1]
	if r.Name == "bursts" {
		known = r.times[10] // nobody can know before the second burst that there is one
	}
	r.Play(rhythmEnd, r.seed, rhythmLook, time.Sleep, func(time.Duration) { r.emit(0) }, func(now time.Duration) {
		change(now)
		synctest.Wait()
		if event := r.on.only(t); now >= known {
			require.Equal(t, series.Ongoing.String(), stateOf(event), "after %v", now)
			require.Equal(t, series.Ongoing, series.StateAt(event, time.Now()), "after %v", now)
		}
	})
	r.requireFewWrites(t)
}

// requireFewWrites requires at most two writes per hour, and four. A change of the process
// can take two more: what the first leaves, and the next finds.
func (r *rhythm) requireFewWrites(t *testing.T) {
	t.Helper()
	writes := slices.DeleteFunc(r.on.log(), func(q request) bool { return q.Verb == "list" || q.Body == "{}" || q.Err != nil })
	limit := 2*int(rhythmEnd/time.Hour) + 4 + 2*(r.starts-1)
	require.LessOrEqual(t, len(writes), limit, "%v", writes)
}

// requireFinished requires that the loop is Finished soon after it has stopped, and that
// every occurrence counts.
func (r *rhythm) requireFinished(t *testing.T) {
	t.Helper()
	last := r.times[len(r.times)-1]
	ends := last + max(finishAfter+15*time.Second, r.longest*5/2)
	if r.starts > 1 { // an earlier process may run
		ends += series.DefaultHeartbeat
	}
	time.Sleep(ends - rhythmEnd)
	synctest.Wait()
	event := r.on.only(t)
	assert.Equal(t, series.Finished.String(), stateOf(event))
	assert.EqualValues(t, len(r.times), countOf(event))
	assert.WithinDuration(t, r.begin, event.EventTime.Time, time.Millisecond)
	assert.WithinDuration(t, r.begin.Add(last), event.Series.LastObservedTime.Time, time.Millisecond)
	assert.Empty(t, r.dropped())
}

func TestLoopIsOneSeries(t *testing.T) {
	eachRhythm(t, func(t *testing.T, r *rhythm) {
		r.on.script(failing("list", statusError(403, 0)))
		r.start(t, Options{})
		r.run(t, func(time.Duration) {})
		r.requireFinished(t)
		r.on.assertNoProblems(t)
	})
}

// A process is shut down at a random time, and again and again after the loop has backed off.
// TestRestart has a hot loop.
func TestLoopIsOneSeriesAfterARestart(t *testing.T) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			eachRhythm(t, func(t *testing.T, r *rhythm) {
				if r.Longest < time.Second {
					return
				}
				opts := Options{Scope: restart.scope, listLimit: listLimit(restart.list)}
				r.start(t, opts)
				at := r.between(0, r.times[len(r.times)-1]-rhythmLook)
				opts.ReportingInstance = restart.instance
				r.run(t, func(now time.Duration) {
					if now == at || now%(20*time.Minute) == 5*time.Minute && now > max(time.Hour, at) && now < r.times[len(r.times)-1] {
						r.broadcaster.Shutdown()
						r.start(t, opts)
					}
				})
				r.requireFinished(t)
				r.on.assertNoProblems(t)
			})
		})
	}
}

// The old leader stops a while after the new one has begun to emit the events. The Event
// is as old as its latest heartbeat then, so the new leader first knows the rhythm roughly.
func TestLoopIsOneSeriesAfterAHandOver(t *testing.T) {
	eachRhythm(t, func(t *testing.T, r *rhythm) {
		opts := Options{Scope: SameController}
		r.start(t, opts)
		at := r.between(time.Hour, 2*time.Hour)
		opts.ReportingInstance = "tester-2"
		r.run(t, func(now time.Duration) {
			if now == at {
				time.AfterFunc(20*time.Minute, r.broadcaster.Shutdown)
				r.start(t, opts)
			}
		})
		r.requireFinished(t)
	})
}

// The gaps of a loop that follows no rhythm say little about the next one. So its window is
// too short now and then, but users see one Event, and it takes few writes.
func TestIrregularLoopTakesFewWrites(t *testing.T) {
	const hours = 24
	minutes := func(gap float64) time.Duration { return time.Duration(gap * float64(time.Minute)) }
	for name, next := range map[string]func(rng *rand.Rand) time.Duration{
		"at random":     func(rng *rand.Rand) time.Duration { return minutes(8 * rng.ExpFloat64()) },
		"often":         func(rng *rand.Rand) time.Duration { return minutes(2 * rng.ExpFloat64()) },
		"some are long": func(rng *rand.Rand) time.Duration { return minutes(math.Exp(1.5 * rng.NormFloat64())) },
		"hiccups": func(rng *rand.Rand) time.Duration {
			if rng.IntN(150) == 0 {
				return minutes(7)
			}
			return minutes(0.5)
		},
	} {
		for seed := range workload.Seeds(5) {
			replayInBubble(t, fmt.Sprintf("%s, seed %d", name, seed), seed, Options{listLimit: -1}, func(t *testing.T, w *world) {
				rng, begin, n := rand.New(rand.NewPCG(seed, 2)), time.Now(), 0
				for ; time.Since(begin) < hours*time.Hour; n++ {
					w.emit(0)
					time.Sleep(min(next(rng), 35*time.Minute).Truncate(time.Microsecond) + drift)
				}
				w.flush(t)
				events := w.server.list()
				require.Len(t, events, 1)
				assert.EqualValues(t, n, countOf(events[0]))
				// Besides the flush, longer windows that the next process has to know.
				assert.LessOrEqual(t, len(w.server.log()), 2*hours+4+1+3)
			})
		}
	}
}

// A process is killed once an hour. What it has not written is lost. Users see that the loop
// goes on from its first occurrence in the next process, unless a process was killed while
// the loop still backed off: nobody knows how far.
func TestLoopIsOneSeriesOverKills(t *testing.T) {
	for name, restart := range restarts {
		for _, down := range []time.Duration{0, 5 * time.Minute} {
			t.Run(fmt.Sprintf("%s, down for %v", name, down), func(t *testing.T) {
				eachRhythm(t, func(t *testing.T, r *rhythm) {
					if r.Longest < time.Second {
						return
					}
					r.killEachHour(t, Options{Scope: restart.scope, listLimit: listLimit(restart.list)}, restart.instance, down)
				})
			})
		}
	}
}

func (r *rhythm) killEachHour(t *testing.T, opts Options, instance string, down time.Duration) {
	t.Helper()
	var latest time.Duration
	emitted, known, isDown := 0, 0, false // known by users to go on
	first := r.times[1]
	if r.Name == "bursts" {
		first = r.times[10]
	}
	r.start(t, opts)
	opts.ReportingInstance = instance
	occur := func(now time.Duration) {
		if !isDown {
			r.emit(0)
			emitted, known, latest = emitted+1, known+1, now
		}
	}
	kills := make(map[time.Duration]bool)
	for hour := range rhythmEnd/time.Hour - 1 {
		kills[hour*time.Hour+r.between(10*time.Minute, 50*time.Minute)] = true
	}
	r.Play(rhythmEnd, r.seed, rhythmLook, time.Sleep, occur, func(now time.Duration) {
		if kills[now] {
			synctest.Wait()
			r.kill()
			emitted, known, isDown = int(countOf(r.on.only(t))), 0, true
		}
		if kills[now-down] {
			r.start(t, opts)
			isDown = false
		}
		synctest.Wait()
		if event := r.on.only(t); known > 0 && now >= first && (now < 10*time.Minute || now > 90*time.Minute) {
			require.Equal(t, series.Ongoing, series.StateAt(event, time.Now()), "after %v", now)
		}
	})
	r.requireFewWrites(t)
	quiet := finishAfter
	if r.longest > finishAfter/3 {
		quiet = maxWindow // a process can take two gaps, in the middle of which the one before was killed, for one
	}
	time.Sleep(latest + quiet + 15*time.Second - rhythmEnd)
	synctest.Wait()
	event := r.on.only(t)
	assert.Equal(t, series.Finished.String(), stateOf(event))
	assert.EqualValues(t, emitted, countOf(event))
	r.on.assertNoProblems(t)
}

// While processes are down, a loop is not slow: it ends soon, although its process restarts
// again and again. One that was slow once ends after the longest window.
func TestFastLoopEndsSoonOverRestarts(t *testing.T) {
	for name, restart := range restarts {
		for stop, end := range map[string]func(*world){"shutdown": func(w *world) { w.broadcaster.Shutdown() }, "kill": (*world).kill} {
			for down := range 6 {
				down := time.Duration(down*7) * time.Minute
				runBubble(t, fmt.Sprintf("%s, %s, down for %v", name, stop, down), func(t *testing.T) {
					on := newLister()
					on.api.TTL = time.Hour
					opts := Options{Scope: restart.scope, listLimit: listLimit(restart.list)}
					w := startOn(t, on.server, on, opts)
					opts.ReportingInstance = restart.instance
					if stop == "shutdown" && down == 0 { // otherwise the Event does not say that the loop is fast
						w.loop(4, 17*time.Minute)
					}
					for range 6 {
						w.loop(20, time.Minute)
						end(w)
						time.Sleep(down)
						w = startOn(t, on.server, on, opts)
					}
					w.loop(20, time.Minute)
					quiet := finishAfter
					if stop == "shutdown" && down == 0 {
						quiet = maxWindow // each process remembers the window of the one before
					}
					// What a list has restored ends a heartbeat later.
					time.Sleep(quiet + series.DefaultHeartbeat + 15*time.Second - time.Minute)
					synctest.Wait()
					assert.Equal(t, series.Finished.String(), stateOf(on.only(t)))
					w.broadcaster.Shutdown()
				})
			}
		}
	}
}

// Slow rounds over many notes have as many Events as the option permits.
func TestDistinctNotesInSlowRounds(t *testing.T) {
	inBubble(t, Options{listLimit: -1}, func(t *testing.T, w *world) {
		recorder := w.distinct(10)
		for range 6 {
			for note := range 100 {
				recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note %d", note)
			}
			time.Sleep(10 * time.Minute)
		}
		assert.Len(t, w.server.list(), 11)
	})
}

// Users do not see a loop as Ongoing for longer than its heartbeat and its window after
// its process was killed.
func TestLoopOfAKilledProcess(t *testing.T) {
	eachRhythm(t, func(t *testing.T, r *rhythm) {
		at := r.between(20*time.Minute, rhythmEnd)
		window := min(max(finishAfter, r.longest*21/10+time.Second), maxWindow)
		var latest time.Duration
		r.start(t, Options{})
		occur := func(now time.Duration) {
			if now <= at {
				r.emit(0)
				latest = now
			}
		}
		seen := 0
		r.Play(rhythmEnd+time.Hour, r.seed, rhythmLook, time.Sleep, occur, func(now time.Duration) {
			if now == at {
				r.kill()
			}
			synctest.Wait()
			for _, event := range r.on.list() { // it expires after an hour
				if series.StateAt(event, time.Now()) == series.Ongoing {
					seen++
					require.LessOrEqual(t, now, latest+30*time.Minute+window+series.ClockSkew)
				}
			}
		})
		assert.NotZero(t, seen)
	})
}

// Occurrences that are further apart than the longest window count in the same Event for as
// long as the server keeps that, and are no loop.
func TestSlowEventIsNoLoop(t *testing.T) {
	for _, tt := range []struct{ every, ttl time.Duration }{
		{50 * time.Minute, time.Hour}, {50 * time.Minute, 3 * time.Hour}, {time.Hour, 3 * time.Hour}, {time.Hour, 24 * time.Hour}, {2 * time.Hour, time.Hour},
	} {
		runInBubble(t, fmt.Sprint("every ", tt.every, ", TTL ", tt.ttl), Options{listLimit: -1, EventTTL: tt.ttl}, func(t *testing.T, w *world) {
			const times = 12
			for range times {
				w.emit(0)
				for end := time.Now().Add(tt.every); time.Now().Before(end); time.Sleep(time.Minute) {
					synctest.Wait()
					for _, event := range w.server.list() {
						require.Contains(t, []string{"", series.Finished.String()}, stateOf(event))
					}
				}
			}
			assert.Len(t, w.server.log(), times, "one request each")
			if tt.every < tt.ttl {
				assert.EqualValues(t, times, countOf(w.server.only(t)))
			}
		})
	}
}

// Singletons that have ended keep their places only while there is room. One that recurs
// continues in its Event.
func TestEndedSingletonsMakeRoom(t *testing.T) {
	const capacity = 100
	inBubble(t, Options{listLimit: -1, Capacity: capacity, QPS: -1}, func(t *testing.T, w *world) {
		emit := func(from, to int) {
			for pod := from; pod < to; pod++ {
				w.emit(pod)
			}
			w.flush(t)
		}
		const running = 10
		emit(0, capacity-running)
		time.Sleep(finishAfter + time.Second)
		emit(capacity-running, capacity)
		emit(capacity-running, capacity) // Ongoing
		emit(capacity, 2*capacity-running)
		assert.Empty(t, w.dropped())
		for _, event := range w.server.list() {
			assert.NotEqual(t, series.Unknown.String(), stateOf(event), event.Name)
		}
		before := len(w.server.log())
		time.Sleep(maxWindow - finishAfter - time.Minute)
		heartbeats := len(w.server.log()) - before
		w.emit(0)
		w.flush(t)
		log := w.server.log()[before+heartbeats:]
		require.Equal(t, []string{"create", "patch", "patch"}, verbs(log))
		assert.Equal(t, "{}", log[1].Body)
		event := w.server.api.Get("ns", log[0].Name)
		assert.Equal(t, series.Ongoing.String(), stateOf(event))
		assert.EqualValues(t, 2, countOf(event))
	})
}
