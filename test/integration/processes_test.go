package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/wiring"
	"github.com/eventseries/eventseries/series"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestRestart has a process continue the series of the one before it.
func TestRestart(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		scope  events.Scope
		newPod bool // whether the second process has another reportingInstance
		list   bool
	}{
		"by name":          {events.SameInstance, false, false},
		"by list":          {events.SameInstance, false, true},
		"new pod, by name": {events.SameController, true, false},
		"new pod, by list": {events.SameController, true, true},
	} {
		for before, sinkBefore := range sinks {
			for after, sinkAfter := range sinks {
				t.Run(before+" to "+after+" "+name, func(t *testing.T) {
					t.Parallel()
					namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
					pod := podIn(namespace, "pod")
					strangersEvent(t, clients, namespace, "stranger")
					opts := events.Options{Scope: way.scope}
					one := startRecording(t, sinkBefore, apiserver.Config(t), opts)
					emit(one.recorder(), pod, 10)
					one.Shutdown()
					first := eventAbout(t, clients, namespace, pod.UID)
					assert.Equal(t, "Ongoing", state(first))

					opts.Namespaces, opts.List = []string{namespace}, ptr.To(way.list)
					if !way.newPod {
						opts.ReportingInstance = one.instance
					}
					two := newRecording(t, sinkAfter, apiserver.Config(t), opts)
					recorder := two.recorder()
					two.start(t)
					if way.list {
						emit(recorder, podIn(namespace, "first"), 1) // the first event of a controller makes the recorder list
						eventually(t, func(c *assert.CollectT) { assert.EqualValues(c, 1, two.Stats().Restored) })
					}
					emit(recorder, pod, 10)
					two.flush(t)
					assert.Empty(t, two.Stats().Dropped)
					if way.list {
						assert.Equal(t, 1, two.writes("list", "written"))
						assert.Zero(t, two.writes("create", "taken"))
						assert.Zero(t, two.Stats().Adopted)
					} else {
						assert.EqualValues(t, 1, two.Stats().Adopted)
						assert.Zero(t, two.Stats().Restored)
					}
					event := eventAbout(t, clients, namespace, pod.UID)
					assert.Equal(t, first.Name, event.Name)
					assert.Equal(t, series.EventTime(first), series.EventTime(event))
					assert.Equal(t, one.instance, event.ReportingInstance, "it is immutable")
					assert.Equal(t, 20, occurrences(event))
					assert.Equal(t, "Ongoing", state(event))
					switch {
					case after == "core" && before == "core":
						requireOldFields(t, clients, event)
					case after == "core":
						assert.Empty(t, event.DeprecatedSource)
						requireOldSeries(t, clients, event)
					case before == "core":
						// The deprecated fields are immutable in events.k8s.io/v1.
						assert.Equal(t, first.DeprecatedCount, event.DeprecatedCount)
						assert.Equal(t, first.DeprecatedLastTimestamp, event.DeprecatedLastTimestamp)
					}
				})
			}
		}
	}
}

// TestListLimit has a process list what the one before it has left, if the server says that
// it has few Events. Tests of package events have the limits.
func TestListLimit(t *testing.T) {
	t.Parallel()
	namespace, clients := apiserver.Namespace(t), apiserver.Clientset(t)
	clock := clocktesting.NewFakeClock(time.Now())
	opts := events.Options{Namespaces: []string{namespace}}
	sink := func(clients *kubernetes.Clientset) events.EventSink {
		return &wiring.Sink{EventSink: eventsSink(clients), Clock: clock, ListLimit: 4} // three series, and the event that makes it list
	}
	one := startRecording(t, sink, apiserver.Config(t), opts)
	pods := []string{"a", "b", "c"}
	for _, pod := range pods {
		emit(one.recorder(), podIn(namespace, pod), 2)
	}
	one.Shutdown()

	opts.ReportingInstance = one.instance
	two := startRecording(t, sink, apiserver.Config(t), opts)
	emit(two.recorder(), podIn(namespace, "first"), 1)
	two.flush(t)
	for _, pod := range pods {
		eventuallyLater(t, clock, func(c *assert.CollectT) {
			requireFinished(c, eventsAbout(c, clients, namespace, podIn(namespace, pod).UID))
		})
	}
	assert.EqualValues(t, 3, two.Stats().Restored)
	assert.Zero(t, two.writes("create", "taken"))
}
