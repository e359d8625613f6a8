package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/test/casestudy/recorders"
)

var docs = filepath.Join("..", "..", "docs")

func TestMeasure(t *testing.T) {
	event := func(about string, count int32) eventsv1.Event {
		e := eventsv1.Event{Regarding: corev1.ObjectReference{Kind: "Pod", Name: about}, EventTime: metav1.NowMicro()}
		if count > 1 {
			e.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NowMicro()}
		}
		return e
	}
	const audit = `{"verb":"create","user":{"username":"kube-scheduler"},"objectRef":{"resource":"events","name":"stuck-1.17"}}
{"verb":"patch","user":{"username":"kube-scheduler"},"objectRef":{"resource":"events","name":"stuck-1.17"}}
{"verb":"create","user":{"username":"kube-scheduler"},"objectRef":{"resource":"events","name":"work-0-1.17"}}
{"verb":"list","user":{"username":"kube-scheduler"},"objectRef":{"resource":"events"}}
{"verb":"list","user":{"username":"admin"},"objectRef":{"resource":"events"}}
`
	counter, file := recorders.NewCounter(), filepath.Join(t.TempDir(), "counts.json")
	for name, n := range map[string]int{"stuck-1": 9, "stuck-2": 2, "work-0-1": 1, "another": 1} {
		for range n {
			counter.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	}
	require.NoError(t, counter.Write(file))
	counts, err := os.ReadFile(file)
	require.NoError(t, err)
	var run schedulerRun
	require.NoError(t, run.measure(counts, []byte(audit),
		[]eventsv1.Event{event("stuck-1", 7)},
		[]eventsv1.Event{event("stuck-1", 9), event("stuck-2", 1), event("work-0-1", 1), event("another", 1)}))
	assert.Equal(t, schedulerRun{
		Occurrences: 11, Requests: map[string]int{"create": 1, "patch": 1, "list": 1},
		Running: eventTally{Count: 7}, Stopped: eventTally{Events: 2, Count: 10}, OtherOccurrences: 1, OtherEvents: 1,
	}, run)
	assert.Equal(t, 3, run.Sent())
	assert.Equal(t, 1, run.Lost())
	assert.Zero(t, run.OtherLost())
}

// After ten minutes, the recorder has one Event for each Pod that does not fit, and every
// occurrence in it.
func TestResults(t *testing.T) {
	r, err := readResults(filepath.Join(docs, "case-study", "scheduler.json"))
	require.NoError(t, err)
	require.Len(t, r.Runs, len(schedulerCases)*len(schedulerRecorders), "of cases that do not exist, or none of some")
	for i, study := range schedulerCases {
		theirs, ours := r.Runs[2*i], r.Runs[2*i+1]
		assert.Equal(t, study.Name, ours.Case)
		assert.Equal(t, recorders.ToolsEvents, theirs.Recorder, study.Name)
		assert.Equal(t, study.Pods, ours.Stopped.Events, study.Name)
		if study.Duration == 10*time.Minute {
			assert.Zero(t, ours.Lost(), study.Name)
			assert.Less(t, ours.Sent(), theirs.Sent(), study.Name)
		}
	}
}

func TestReplace(t *testing.T) {
	one := schedulerRun{
		Case: schedulerCases[1].Name, Recorder: recorders.Eventseries,
		Batches: []batch{{Bound: 10, Seconds: 1}, {Bound: 10, Seconds: 2}, {Bound: 10, Seconds: 5}},
	}
	assert.InDelta(t, 5, one.Throughput(), 0)
	one.Batches = one.Batches[:2]
	assert.InDelta(t, 7.5, one.Throughput(), 0)

	var r results
	for _, run := range []schedulerRun{
		one, {Case: one.Case, Recorder: recorders.ToolsEvents},
		{Case: schedulerCases[0].Name, Recorder: recorders.Eventseries}, {Case: one.Case, Recorder: recorders.Eventseries, Occurrences: 1},
	} {
		r.replace(run)
	}
	require.Len(t, r.Runs, 3)
	assert.Equal(t, schedulerCases[0].Name, r.Runs[0].Case)
	assert.Equal(t, recorders.ToolsEvents, r.Runs[1].Recorder)
	assert.Equal(t, 1, r.Runs[2].Occurrences)
}

// The section is what the results contain. Other sections remain.
func TestPageIsUpToDate(t *testing.T) {
	r, err := readResults(filepath.Join(docs, "case-study", "scheduler.json"))
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(docs, "case-study.md"))
	require.NoError(t, err)
	text, err := r.render(string(page))
	require.NoError(t, err)
	assert.Equal(t, text, string(page), "run go run ./casestudy -page")

	section, err := r.render(heading)
	require.NoError(t, err)
	text, err = r.render("# Page\n\n" + heading + "old\n\n## Another\n")
	require.NoError(t, err)
	assert.Equal(t, "# Page\n\n"+section+"\n## Another\n", text)
	_, err = r.render("# Page\n")
	assert.ErrorContains(t, err, "no heading")
}
