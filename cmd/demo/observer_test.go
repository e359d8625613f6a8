package main

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/eventseries/eventseries/series"
)

var (
	crashing = subject{controller: "kubelet", regarding: object{"Pod", namespace, "checkout"}, reason: "BackOff"}
	pulled   = subject{controller: "kubelet", regarding: object{"Pod", namespace, "checkout"}, reason: "Pulled"}
)

// eventOf returns the Event of a subject.
func eventOf(s subject, version string, state series.State, count int32) *eventsv1.Event {
	now := at(int(count), state, count)
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: s.regarding.name + "." + s.reason, ResourceVersion: version},
		EventTime:           metav1.NewMicroTime(now.First),
		ReportingController: s.controller,
		Reason:              s.reason,
		Regarding:           corev1.ObjectReference{Kind: s.regarding.kind, Namespace: s.regarding.namespace, Name: s.regarding.name},
	}
	if count > 1 {
		event.Labels = map[string]string{series.LabelState: state.String()}
		event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(now.Last)}
	}
	return event
}

func newTestObserver() *observer { return newObserver([]controller{{name: "kubelet"}}) }

func TestObserverFollowsEventsToTheirFinalStates(t *testing.T) {
	o := newTestObserver()
	emitted := map[subject]int{crashing: 90, pulled: 1}
	other := eventOf(subject{controller: "other"}, "0", series.Singleton, 1)
	_, _, changed := o.observe(other)
	assert.False(t, changed, "the observer ignores other controllers")
	o.observeDeletion(other)
	var steps []step
	for _, event := range []*eventsv1.Event{
		eventOf(crashing, "1", series.Singleton, 1),
		eventOf(pulled, "2", series.Singleton, 1),
		eventOf(crashing, "3", series.Ongoing, 2),
		eventOf(crashing, "4", series.Ongoing, 70),
		eventOf(crashing, "5", series.Finished, 90),
	} {
		assert.False(t, o.settled(emitted))
		_, what, changed := o.observe(event)
		require.True(t, changed)
		steps = append(steps, what)
		_, _, changed = o.observe(event)
		assert.False(t, changed, "the list repeats what the watch has shown")
	}
	assert.Equal(t, []step{stepCreated, stepCreated, stepSeries, stepHeartbeat, stepFinished}, steps)
	assert.True(t, o.settled(emitted))
	assert.Equal(t, []verdict{
		{subject: crashing, history: "Singleton → Ongoing → 1 heartbeat → Finished", count: 90, emitted: 90},
		{subject: pulled, history: "Singleton", count: 1, emitted: 1},
	}, o.verdicts(emitted))
}

func TestObserverFindsProblems(t *testing.T) {
	valid := eventOf(pulled, "1", series.Singleton, 1)
	invalid := eventOf(pulled, "1", series.Singleton, 1)
	invalid.EventTime = metav1.MicroTime{}
	duplicate := eventOf(pulled, "2", series.Singleton, 1)
	duplicate.Name += ".second"
	for problem, test := range map[string]struct {
		observed []*eventsv1.Event
		deleted  bool
		emitted  int
	}{
		"missing on the server":                             {emitted: 1},
		"emitted 0 times, but the count on the server is 1": {observed: []*eventsv1.Event{valid}},
		"emitted 2 times, but the count on the server is 1": {observed: []*eventsv1.Event{valid}, emitted: 2},
		"deleted":         {observed: []*eventsv1.Event{valid}, deleted: true, emitted: 1},
		"duplicate Event": {observed: []*eventsv1.Event{valid, duplicate}, emitted: 1},
		"invalid Event: series: event shop/checkout.Pulled: no eventTime": {observed: []*eventsv1.Event{invalid}, emitted: 1},
	} {
		o := newTestObserver()
		for _, event := range test.observed {
			o.observe(event)
		}
		if test.deleted {
			o.observeDeletion(valid)
		}
		emitted := map[subject]int{pulled: test.emitted}
		maps.DeleteFunc(emitted, func(_ subject, n int) bool { return n == 0 })
		var problems []string
		for _, v := range o.verdicts(emitted) {
			problems = append(problems, v.problems...)
		}
		assert.Contains(t, problems, problem)
	}
}
