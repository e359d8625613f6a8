package integration

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// A leader that has lost its lease shuts down while the next one goes on in the
// same Event: what each has counted is there in the end, and no count goes back.
func TestDeposedLeaderShutsDown(t *testing.T) {
	t.Parallel()
	config, namespace := apiserver.Config(t), apiserver.Namespace(t)
	opts := events.Options{Scope: events.SameController}
	deposed, leader := startRecording(t, config, opts), startRecording(t, config, opts)
	history := watchEvents(t, leader.clients, namespace)
	pod := podIn(namespace, "looping")

	emit(deposed.recorder(), pod, 10)
	deposed.flush(t)
	emit(deposed.recorder(), pod, 5)
	emit(leader.recorder(), pod, 50)
	leader.flush(t)
	assert.Equal(t, 60, occurrences(eventAbout(t, leader.clients, namespace, pod.UID)))
	deposed.Shutdown()
	assert.Equal(t, 65, occurrences(eventAbout(t, leader.clients, namespace, pod.UID)))
	emit(leader.recorder(), pod, 1)
	leader.flush(t)
	assert.Equal(t, 66, occurrences(eventAbout(t, leader.clients, namespace, pod.UID)))
	assert.Positive(t, requestsOf(leader.Stats(), "flush", "changed"))
	assert.EqualValues(t, 1, leader.Stats().Adopted)
	requireNothingGoesBack(t, history)
}

// Two that write at the same time are as exact, if slower.
func TestTwoLeadersAtOnce(t *testing.T) {
	t.Parallel()
	config, namespace := apiserver.Config(t), apiserver.Namespace(t)
	const rounds, each = 20, 7
	var leaders sync.WaitGroup
	var all []*recording
	pod := podIn(namespace, "looping")
	for range 2 {
		r := startRecording(t, config, events.Options{Scope: events.SameController})
		all = append(all, r)
		leaders.Go(func() {
			for range rounds {
				emit(r.recorder(), pod, each)
				assert.NoError(t, r.Flush(t.Context()))
			}
		})
	}
	leaders.Wait()
	for _, r := range all {
		r.Shutdown()
		require.Empty(t, r.Stats().Dropped)
	}
	assert.Equal(t, 2*rounds*each, occurrences(eventAbout(t, all[0].clients, namespace, pod.UID)))
}
