package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/client-go/kubernetes"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/wiring"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

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
