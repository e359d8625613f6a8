package events

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/eventseries/eventseries/internal/workload"
	"github.com/eventseries/eventseries/series"
)

// filterOf returns a filter with the given lines.
func filterOf(t testing.TB, lines ...string) *Filter {
	t.Helper()
	f := &Filter{}
	require.NoError(t, f.Set(strings.Join(lines, "\n")))
	return f
}

func TestFilterIsAFlag(t *testing.T) {
	var filter Filter
	flags := flag.NewFlagSet("program", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Var(&filter, "event-filter", "which events to record")
	flags.PrintDefaults() // calls String of a zero value
	require.NoError(t, flags.Parse([]string{"--event-filter=reason!=Synced"}))
	assert.Equal(t, "reason!=Synced", filter.String())
	assert.ErrorContains(t, flags.Parse([]string{"--event-filter=reason"}), `invalid value "reason" for flag -event-filter: events: filter: line 1: `)
	assert.Equal(t, "reason!=Synced", filter.String())
}

// Whatever a filter excludes: nothing of it is sent, logged, or reported as a loss, and all
// of it is counted.
func TestFilteredEvents(t *testing.T) {
	filter := filterOf(t, "type=Warning,regarding.kind=Pod")
	inBubble(t, Options{Filter: filter}, func(t *testing.T, w *world) {
		watched := 0
		_, err := w.broadcaster.StartEventWatcher(func(runtime.Object) { watched++ })
		require.NoError(t, err)
		for range 10 {
			w.emitAs(corev1.EventTypeNormal, 0)
			w.recorder.Eventf(nil, nil, corev1.EventTypeWarning, "Tested", "Testing", "about nothing")
			w.recorder.Eventf(testPod(1), nil, "Strange", "Tested", "Testing", "of no type")
		}
		synctest.Wait()
		stats := w.broadcaster.Stats()
		assert.EqualValues(t, 30, stats.Filtered)
		assert.EqualValues(t, 30, stats.Occurrences)
		assert.Zero(t, stats.Tracked)
		assert.Zero(t, watched)
		assert.Empty(t, w.server.log())
		assert.Empty(t, w.dropped())
		assert.Empty(t, w.logs.with("Dropped"))
		w.emitAs(corev1.EventTypeWarning, 0)
		synctest.Wait()
		assert.Equal(t, 1, watched)
		w.broadcaster.Shutdown()
		filter.broadcasters.Range(func(b, _ any) bool { return assert.Fail(t, "the filter has a broadcaster") })
		w.emitAs(corev1.EventTypeNormal, 0)
		assert.EqualValues(t, 31, w.broadcaster.Stats().Filtered, "and not dropped, also after the shutdown")
	})
}

// randomSelector returns a valid filter over the values of emitter.
func randomSelector(r *rand.Rand) string {
	term := func() string {
		op := []string{"=", "!="}[r.IntN(2)]
		return []string{
			"type" + op + []string{"Normal", "Warning"}[r.IntN(2)],
			fmt.Sprint("reason", op, "Reason", r.IntN(5)),
			fmt.Sprint("regarding.namespace", op, "ns", r.IntN(3)),
			fmt.Sprint("action", op, "Action", r.IntN(2)),
		}[r.IntN(4)]
	}
	lines := []string{}
	for range r.IntN(3) {
		terms := []string{term()}
		for range 1 + r.IntN(2) { // two at least, so that no two lines select everything
			terms = append(terms, term())
		}
		lines = append(lines, strings.Join(terms, ","))
	}
	return strings.Join(lines, "\n")
}

// loop is a series of the property test.
type loop struct {
	pod                       *corev1.Pod
	eventtype, reason, action string
	count                     int
}

// selectedBy judges with the selectors of Kubernetes, and not with those of Filter.
func (l *loop) selectedBy(filter string) bool {
	if filter == "" {
		return true
	}
	for line := range strings.SplitSeq(filter, "\n") {
		if fields.ParseSelectorOrDie(line).Matches(fields.Set{
			"type": l.eventtype, "reason": l.reason, "action": l.action, "regarding.namespace": l.pod.Namespace,
		}) {
			return true
		}
	}
	return false
}

// A change of the filter ends the Ongoing series that it excludes, with their exact counts,
// and there are no requests for them afterwards. The others go on.
func TestFilterChangesWhileSeriesAreOngoing(t *testing.T) {
	for seed := range workload.Seeds(2) {
		filter := &Filter{}
		replayInBubble(t, fmt.Sprint("seed ", seed), seed, Options{Filter: filter, QPS: -1}, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(seed, 29))
			loops := make(map[string]*loop)
			for i := range 1000 {
				pod := testPod(i)
				pod.Namespace = fmt.Sprint("ns", r.IntN(3))
				eventtype := []string{corev1.EventTypeNormal, corev1.EventTypeWarning}[r.IntN(2)]
				loops[pod.Name] = &loop{pod, eventtype, fmt.Sprint("Reason", r.IntN(5)), fmt.Sprint("Action", r.IntN(2)), 0}
			}
			current := ""
			emit := func() {
				for _, name := range slices.Sorted(maps.Keys(loops)) {
					l := loops[name]
					w.recorder.Eventf(l.pod, nil, l.eventtype, l.reason, l.action, "note")
					w.server.replay.settle()
					if l.selectedBy(current) {
						l.count++
					}
				}
				time.Sleep(time.Minute)
			}
			for range 3 {
				emit()
			}
			require.Equal(t, 1000, w.broadcaster.Stats().Ongoing)
			for range 4 {
				current = randomSelector(r)
				require.NoError(t, filter.Set(current))
				time.Sleep(10 * time.Second) // the last writes
				before, selected := len(w.server.log()), 0
				for range 3 + r.IntN(20) {
					emit()
				}
				for _, request := range w.server.log()[before:] {
					pod, _, _ := strings.Cut(request.Name, ".")
					assert.True(t, loops[pod].selectedBy(current), "%q excludes %v", current, request)
				}
				for _, l := range loops {
					if l.selectedBy(current) {
						selected++
					}
				}
				assert.Equal(t, selected, w.broadcaster.Stats().Ongoing, current)
				latest := make(map[string]*eventsv1.Event) // of those that MaxWindow has ended there are earlier ones
				for _, event := range w.server.list() {
					if l := latest[event.Regarding.Name]; l == nil || l.EventTime.Before(&event.EventTime) {
						latest[event.Regarding.Name] = event
					}
				}
				for name, event := range latest {
					want := series.Finished
					if loops[name].selectedBy(current) {
						want = series.Ongoing
					}
					assert.Equal(t, want.String(), stateOf(event), event.Name)
				}
			}
			w.flush(t)
			counts := make(map[string]int)
			for _, event := range w.server.list() {
				counts[event.Regarding.Name] += int(countOf(event))
			}
			for name, l := range loops {
				assert.Equal(t, l.count, counts[name], name)
			}
			assert.Empty(t, w.dropped())
		})
	}
}

// A filter is a remedy for a flood: what waits to be created is not.
func TestFilterAgainstAFlood(t *testing.T) {
	filter := &Filter{}
	inBubble(t, Options{Filter: filter}, func(t *testing.T, w *world) {
		w.server.script(always(apierrors.NewInternalError(assert.AnError)))
		w.server.slow(time.Second)
		for i := range 1000 {
			for range 1 + i/2%3 {
				w.emitAs([]string{corev1.EventTypeNormal, corev1.EventTypeWarning}[i%2], i)
			}
		}
		time.Sleep(500 * time.Millisecond)
		inFlight := len(w.server.log())
		require.NotZero(t, inFlight)
		require.NoError(t, filter.Set("type=Normal"))
		assert.LessOrEqual(t, w.broadcaster.Stats().Waiting, 500+inFlight)
		time.Sleep(time.Second) // they fail
		w.server.slow(0)
		w.server.script(nil)
		before := len(w.server.log())
		time.Sleep(20 * time.Minute)
		// What was in flight may be stored and Ongoing.
		for _, event := range w.server.list() {
			assert.True(t, event.Type == corev1.EventTypeNormal || stateOf(event) == "Finished", event)
		}
		for _, request := range w.server.log()[before:] {
			assert.False(t, strings.Contains(request.Body, `"type":"Warning"`) && !strings.Contains(request.Body, `"Finished"`), request)
		}
		assertBetween(t, 500, 500+inFlight, len(w.server.list()))
		assertBetween(t, 999-3*inFlight, 999, int(w.broadcaster.Stats().Filtered))
		w.flush(t)
	})
}

// A process that starts with a filter finishes what the previous one has left Ongoing.
func TestFilterOfTheNextProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLister()
		w := startOn(t, s.server, s, Options{})
		for range 3 {
			w.emitAs(corev1.EventTypeNormal, 0)
			w.emitAs(corev1.EventTypeWarning, 0)
		}
		w.broadcaster.Shutdown()
		next := startOn(t, s.server, s, Options{Filter: filterOf(t, "type=Warning")})
		next.list()
		time.Sleep(time.Minute)
		for _, event := range s.list() {
			want := map[string]series.State{corev1.EventTypeNormal: series.Finished, corev1.EventTypeWarning: series.Ongoing}[event.Type]
			assert.Equal(t, want.String(), stateOf(event), event.Type)
			assert.EqualValues(t, 3, countOf(event))
		}
		assert.Len(t, s.list(), 2)
	})
}

// Occurrences race with changes of a filter that two broadcasters have.
func TestFilterChangesWhileEventsAreEmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filter := &Filter{}
		worlds := []*world{newWorld(t, Options{Filter: filter, QPS: -1}), newWorld(t, Options{Filter: filter, QPS: -1})}
		var emitters sync.WaitGroup
		for _, w := range worlds {
			w.start(t)
			for g := range 2 {
				emitters.Go(func() {
					for i := range 2000 {
						w.emitAs([]string{corev1.EventTypeNormal, corev1.EventTypeWarning}[g], i%50)
					}
				})
			}
		}
		for i := range 50 {
			require.NoError(t, filter.Set([]string{"type=Normal", "type=Warning"}[i%2]))
		}
		emitters.Wait()
		time.Sleep(time.Minute)
		for _, w := range worlds {
			w.flush(t)
			for _, event := range w.server.list() {
				if event.Type == corev1.EventTypeNormal {
					assert.NotEqual(t, series.Ongoing.String(), stateOf(event))
				}
			}
			w.broadcaster.Shutdown()
			w.assertAccounted(t)
		}
	})
}

func TestFilterAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes, so the note is not sampled
		w := newWorld(t, Options{Filter: filterOf(t, tenSelectors...)})
		emit := func(reason string) func() {
			return func() { w.recorder.Eventf(testPodZero, nil, "Warning", reason, "Restarting", "note") }
		}
		passes, filtered := emit("BackOff"), emit("Synced")
		passes()
		passes()
		assert.Zero(t, testing.AllocsPerRun(100, passes))
		assert.Zero(t, testing.AllocsPerRun(100, filtered))
		assert.EqualValues(t, 101, w.broadcaster.Stats().Filtered)
	})
}

var testPodZero = testPod(0)

// tenSelectors select neither Synced nor Pulled. The last one selects Warnings.
var tenSelectors = func() (lines []string) {
	for i := range 9 {
		lines = append(lines, fmt.Sprintf("type=Normal,reason!=Synced,reason!=Pulled,regarding.namespace=ns-%d", i))
	}
	return append(lines, "type=Warning,reason!=Synced,reason!=Pulled")
}()
