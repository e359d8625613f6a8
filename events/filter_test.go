package events

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/eventseries/eventseries/series"
)

// filterOf returns a filter with the given lines.
func filterOf(t testing.TB, lines ...string) func(series.Key) bool {
	t.Helper()
	f := &Filter{}
	require.NoError(t, f.Set(strings.Join(lines, "\n")))
	return f.Selects
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
			w.recorder.Eventf(testPod(0), (*corev1.Pod)(nil), corev1.EventTypeNormal, "Tested", "Testing", "with nothing")
			w.recorder.Eventf(nil, nil, corev1.EventTypeWarning, "Tested", "Testing", "about nothing")
			w.recorder.Eventf(testPod(1), nil, "Strange", "Tested", "Testing", "of no type")
		}
		synctest.Wait()
		stats := w.broadcaster.Stats()
		assert.EqualValues(t, 30, stats.Filtered)
		assert.Zero(t, stats.Occurrences)
		assert.Zero(t, stats.Tracked)
		assert.Zero(t, watched)
		assert.Empty(t, w.server.log())
		assert.Empty(t, w.dropped())
		assert.Zero(t, stats.RelatedOmitted)
		assert.Empty(t, w.logs.with("Dropped"))
		assert.Empty(t, w.logs.with("incomplete"))
		w.emitAs(corev1.EventTypeWarning, 0)
		synctest.Wait()
		assert.Equal(t, 1, watched)
		w.broadcaster.Shutdown()
		w.emitAs(corev1.EventTypeNormal, 0)
		assert.EqualValues(t, 31, w.broadcaster.Stats().Filtered, "and not dropped, also after the shutdown")
	})
}

// A change of the filter excludes series that are Ongoing. They end by their windows with the counts that
// they had, and continue in the same Events when the filter selects them again.
func TestFilterChangesWhileSeriesAreOngoing(t *testing.T) {
	filter := &Filter{}
	inBubble(t, Options{Filter: filter.Selects, QPS: -1}, func(t *testing.T, w *world) {
		emit := func() {
			w.emitAs(corev1.EventTypeNormal, 0)
			w.emitAs(corev1.EventTypeWarning, 0)
			time.Sleep(time.Minute)
		}
		check := func(normal, warning series.State, count int32) {
			t.Helper()
			events := w.server.list()
			require.Len(t, events, 2)
			for _, event := range events {
				want := map[string]series.State{corev1.EventTypeNormal: normal, corev1.EventTypeWarning: warning}[event.Type]
				assert.Equal(t, want.String(), stateOf(event), event.Type)
				if event.Type == corev1.EventTypeWarning {
					assert.Equal(t, count, countOf(event))
				}
			}
		}
		for range 10 {
			emit()
		}
		require.NoError(t, filter.Set("type=Normal"))
		emit()
		check(series.Ongoing, series.Ongoing, 2)
		for range 9 {
			emit()
		}
		check(series.Ongoing, series.Finished, 10)
		assert.EqualValues(t, 10, w.broadcaster.Stats().Filtered)
		assert.EqualValues(t, 30, w.broadcaster.Stats().Occurrences)
		assert.Equal(t, 1, w.broadcaster.Stats().Ongoing)
		require.NoError(t, filter.Set(""))
		for range 10 {
			emit()
		}
		w.flush(t)
		check(series.Ongoing, series.Ongoing, 20)
		w.broadcaster.Shutdown()
		w.assertAccounted(t)
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
		for range 60 {
			next.emitAs(corev1.EventTypeWarning, 0)
			time.Sleep(time.Minute)
		}
		for _, event := range s.list() {
			want := map[string]series.State{corev1.EventTypeNormal: series.Finished, corev1.EventTypeWarning: series.Ongoing}[event.Type]
			assert.Equal(t, want.String(), stateOf(event), event.Type)
		}
		assert.Len(t, s.list(), 2)
	})
}

// Occurrences race with changes of a filter that two broadcasters have.
func TestFilterChangesWhileEventsAreEmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		filter := &Filter{}
		worlds := []*world{newWorld(t, Options{Filter: filter.Selects, QPS: -1}), newWorld(t, Options{Filter: filter.Selects, QPS: -1})}
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
		for _, w := range worlds {
			w.broadcaster.Shutdown()
			w.assertAccounted(t)
			stats := w.broadcaster.Stats()
			assert.EqualValues(t, 4000, stats.Occurrences+stats.Filtered)
		}
	})
}

// A filter that panics excludes nothing, and is told of.
func TestFilterThatPanics(t *testing.T) {
	inBubble(t, Options{Filter: func(series.Key) bool { panic("no filter") }}, func(t *testing.T, w *world) {
		w.emit(0)
		synctest.Wait()
		assert.Len(t, w.server.list(), 1)
		assert.Len(t, w.logs.with("Caught a panic"), 1)
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
