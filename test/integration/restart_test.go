package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/internal/controlplane"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// TestServerIsKilledInALoop kills the server under a loop, lets new things happen
// while it is away, and starts it again.
func TestServerIsKilledInALoop(t *testing.T) {
	t.Parallel()
	const news = 20
	server := apiserver.Start(t, controlplane.Options{})
	config := apiserver.ConfigOf(t, server)
	namespace := apiserver.NamespaceOn(t, apiserver.ClientsetFor(t, config))
	// Heartbeats are so short that the server is asked all the time.
	r := startRecording(t, config, events.Options{HeartbeatInterval: 200 * time.Millisecond})
	recorder, pod := r.recorder(), podIn(namespace, "looping")
	emitted := 0
	stop := repeat(t, time.Millisecond, func() {
		emit(recorder, pod, 1)
		emitted++
	})
	apiserver.Eventually(t, patience, func(context.Context) error {
		if requestsOf(r.Stats(), "heartbeat", "written") == 0 {
			return errors.New("no heartbeat")
		}
		return nil
	})

	require.NoError(t, server.Kill())
	for i := range news {
		emit(recorder, podIn(namespace, fmt.Sprintf("new-%d", i)), 2)
	}
	apiserver.Eventually(t, patience, func(context.Context) error {
		// The loop, and one of what is new at least.
		if requestsOf(r.Stats(), "heartbeat", "troubled") == 0 || requestsOf(r.Stats(), "create", "troubled") == 0 {
			return errors.New("nothing has failed")
		}
		return nil
	})
	apiserver.Restart(t, server)
	begin := time.Now()
	stop()
	r.flush(t)
	t.Logf("%d occurrences there %v after the restart: %s", emitted+2*news, time.Since(begin).Round(time.Millisecond), r.requests)

	event := eventAbout(t, r.clients, namespace, pod.UID)
	assert.Equal(t, emitted, occurrences(event))
	assert.Equal(t, "Ongoing", state(event))
	for i := range news {
		about := podIn(namespace, fmt.Sprintf("new-%d", i))
		assert.Equal(t, 2, occurrences(eventAbout(t, r.clients, namespace, about.UID)))
	}
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, emitted+2*news)
}
