package main

import (
	"testing"
	"time"

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

// eventOf returns the Event of a subject as the server has it at a version.
func eventOf(s subject, version string, state series.State, count int32) *eventsv1.Event {
	first := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: namespace, Name: s.regarding.name + "." + s.reason, ResourceVersion: version},
		EventTime:           metav1.NewMicroTime(first),
		ReportingController: s.controller,
		Reason:              s.reason,
		Regarding:           corev1.ObjectReference{Kind: s.regarding.kind, Namespace: s.regarding.namespace, Name: s.regarding.name},
	}
	if count > 1 {
		event.Annotations = map[string]string{series.AnnotationState: state.String()}
		event.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(first.Add(time.Duration(count)))}
	}
	return event
}

func newTestObserver() *observer { return newObserver([]loop{{controller: "kubelet"}}) }

func TestObserverFollowsEventsToTheirEnd(t *testing.T) {
	o := newTestObserver()
	emitted := map[subject]int{crashing: 90, pulled: 1}
	var steps []step
	for _, event := range []*eventsv1.Event{
		eventOf(crashing, "1", series.Singleton, 1),
		eventOf(pulled, "2", series.Singleton, 1),
		eventOf(crashing, "3", series.Ongoing, 2),
		eventOf(crashing, "4", series.Ongoing, 70),
		eventOf(crashing, "5", series.Finished, 90),
	} {
		assert.False(t, o.settled(emitted))
		_, what, seen := o.observe(event)
		require.True(t, seen)
		steps = append(steps, what)
	}
	assert.Equal(t, []step{stepCreated, stepCreated, stepSeries, stepHeartbeat, stepFinished}, steps)
	assert.True(t, o.settled(emitted))
	assert.Equal(t, []verdict{
		{subject: crashing, history: "Singleton → Ongoing → 1 heartbeat → Finished", count: 90, emitted: 90},
		{subject: pulled, history: "Singleton", count: 1, emitted: 1},
	}, o.verdicts(emitted))
}

func TestObserverTakesAnEventOnlyOnce(t *testing.T) {
	o := newTestObserver()
	_, _, seen := o.observe(eventOf(pulled, "1", series.Singleton, 1))
	assert.True(t, seen)
	_, _, seen = o.observe(eventOf(pulled, "1", series.Singleton, 1))
	assert.False(t, seen, "a list shows again what a watch has shown")
	assert.Empty(t, o.verdicts(map[subject]int{pulled: 1})[0].problems)
}

func TestObserverIgnoresOthers(t *testing.T) {
	o := newTestObserver()
	stranger := eventOf(subject{controller: "other"}, "1", series.Singleton, 1)
	_, _, seen := o.observe(stranger)
	assert.False(t, seen)
	o.observeDeletion(stranger)
	assert.Empty(t, o.verdicts(nil))
}

func TestObserverFindsWhatIsWrong(t *testing.T) {
	unreadable := eventOf(pulled, "1", series.Singleton, 1)
	unreadable.EventTime = metav1.MicroTime{}
	second := eventOf(pulled, "2", series.Singleton, 1)
	second.Name += ".second"
	for name, test := range map[string]struct {
		see     func(o *observer)
		emitted map[subject]int
		problem string
	}{
		"missing": {
			see:     func(*observer) {},
			emitted: map[subject]int{pulled: 1},
			problem: "the server has no such Event",
		},
		"not emitted": {
			see:     func(o *observer) { o.observe(eventOf(pulled, "1", series.Singleton, 1)) },
			problem: "it was emitted 0 times, but the server counts 1",
		},
		"wrong count": {
			see:     func(o *observer) { o.observe(eventOf(pulled, "1", series.Singleton, 1)) },
			emitted: map[subject]int{pulled: 2},
			problem: "it was emitted 2 times, but the server counts 1",
		},
		"deleted": {
			see: func(o *observer) {
				o.observe(eventOf(pulled, "1", series.Singleton, 1))
				o.observeDeletion(eventOf(pulled, "2", series.Singleton, 1))
			},
			emitted: map[subject]int{pulled: 1},
			problem: "it was deleted",
		},
		"a second Event": {
			see: func(o *observer) {
				o.observe(eventOf(pulled, "1", series.Singleton, 1))
				o.observe(second)
			},
			emitted: map[subject]int{pulled: 1},
			problem: "it is not the first Event of its kind",
		},
		"unreadable": {
			see:     func(o *observer) { o.observe(unreadable) },
			emitted: map[subject]int{pulled: 1},
			problem: "it cannot be read: series: event shop/checkout.Pulled: no eventTime",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newTestObserver()
			test.see(o)
			var problems []string
			for _, v := range o.verdicts(test.emitted) {
				problems = append(problems, v.problems...)
			}
			assert.Contains(t, problems, test.problem)
		})
	}
}
