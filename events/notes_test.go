package events

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/eventseries/eventseries/series"
)

// Ten notes a minute are told apart, and then the rest share a series that says so.
func TestDistinctNotes(t *testing.T) {
	inBubble(t, Options{DistinctNotes: 10}, func(t *testing.T, w *world) {
		for i := range 15 {
			for range 3 {
				w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "job %d is done", i)
			}
		}
		w.flush(t)
		counts := make(map[string]int32)
		for _, event := range w.server.list() {
			counts[event.Note] = countOf(event)
			if strings.HasPrefix(event.Note, series.CombinedPrefix) {
				assert.Equal(t, "job 14 is done", event.Annotations[series.AnnotationLastNote])
			}
		}
		want := map[string]int32{"(combined from similar events): job 10 is done": 15}
		for i := range 10 {
			want[fmt.Sprintf("job %d is done", i)] = 3
		}
		assert.Equal(t, want, counts)
	})
}

// Recorders of one broadcaster can differ in it.
func TestDistinctNotesOfOneRecorder(t *testing.T) {
	inBubble(t, Options{DistinctNotes: 1}, func(t *testing.T, w *world) {
		emit := func(distinct int) {
			recorder := w.broadcaster.NewRecorderWithOptions(testScheme(), fmt.Sprint(controller, distinct), RecorderOptions{DistinctNotes: distinct})
			for i := range 5 {
				recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "note %d", i)
			}
		}
		notes := make(map[string][]string)
		for _, distinct := range []int{-1, 0, 2} {
			emit(distinct)
		}
		w.flush(t)
		for _, event := range w.server.list() {
			notes[event.ReportingController] = append(notes[event.ReportingController], fmt.Sprint(event.Note, " x", countOf(event)))
		}
		assert.Equal(t, []string{"note 0 x5"}, notes[controller+"-1"])
		assert.ElementsMatch(t, []string{"note 0 x1", "(combined from similar events): note 1 x4"}, notes[controller+"0"])
		assert.ElementsMatch(t, []string{"note 0 x1", "note 1 x1", "(combined from similar events): note 2 x3"}, notes[controller+"2"])
	})
}

// A hot loop with a new note each time costs few requests, and the latest note can
// be read on the server.
func TestHotLoopOfDistinctNotes(t *testing.T) {
	inBubble(t, Options{DistinctNotes: 10}, func(t *testing.T, w *world) {
		const n = 10_000
		for i := range n {
			w.recorder.Eventf(testPod(0), nil, "Warning", "BackOff", "Pulling", "request %d failed", i)
			time.Sleep(time.Hour / n)
		}
		w.flush(t)
		assert.LessOrEqual(t, len(w.server.log()), 30)
		for _, event := range w.server.list() {
			if strings.HasPrefix(event.Note, series.CombinedPrefix) {
				assert.EqualValues(t, n-10, countOf(event))
				assert.Equal(t, fmt.Sprintf("request %d failed", n-1), event.Annotations[series.AnnotationLastNote])
			}
		}
	})
}

// What is reported seldom enough has an Event for each note: three events a minute
// about one CronJob, each of which names a job.
func TestDistinctNotesOfACronJob(t *testing.T) {
	inBubble(t, Options{DistinctNotes: 10}, func(t *testing.T, w *world) {
		pod := testPod(0)
		for minute := range 60 {
			pod.ResourceVersion = fmt.Sprint(minute)
			for _, reason := range []string{"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} {
				w.recorder.Eventf(pod, nil, "Normal", reason, reason, "job backup-%d", minute)
			}
			time.Sleep(time.Minute)
		}
		w.flush(t)
		named := make(map[string]struct{})
		for _, event := range w.server.list() {
			assert.EqualValues(t, 1, countOf(event))
			named[event.Note] = struct{}{}
		}
		assert.Len(t, w.server.list(), 180)
		assert.Len(t, named, 60)
		assert.Len(t, w.server.log(), 180, "no request is wasted")
	})
}

// A process that is started again goes on in the series of each note.
func TestDistinctNotesAfterRestart(t *testing.T) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lister{server: newServer()}
				for _, instance := range []string{"tester-1", restart.instance} {
					w := newWorldOn(t, s.server, s, Options{
						DistinctNotes: 2, Scope: restart.scope, SkipList: !restart.list, ReportingInstance: instance,
					})
					w.start(t)
					time.Sleep(time.Second)
					for i := range 4 {
						for range 2 {
							w.recorder.Eventf(testPod(0), nil, "Normal", "Tested", "Testing", "job %d is done", i)
						}
					}
					w.broadcaster.Shutdown()
				}
				counts := make(map[string]int32)
				for _, event := range s.list() {
					counts[event.Note] = countOf(event)
				}
				assert.Equal(t, map[string]int32{
					"job 0 is done": 4, "job 1 is done": 4, "(combined from similar events): job 2 is done": 8,
				}, counts)
				s.assertNoProblems(t)
			})
		})
	}
}
