package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/eventseries/eventseries/events"
	"github.com/eventseries/eventseries/test/internal/apiserver"
)

// The tests in this file do not run beside others, whose goroutines would look
// like leaks.

func TestShutdownWritesWhatIsLeft(t *testing.T) {
	const n = 500
	namespace := apiserver.Namespace(t) // opens the connection that all clients share
	leaks := goleak.IgnoreCurrent()
	r := startRecording(t, apiserver.Config(t), events.Options{ShutdownTimeout: patience})
	recorder := r.recorder()
	for i := range n {
		emit(recorder, podIn(namespace, fmt.Sprintf("pod-%d", i)), 1)
	}
	loop := podIn(namespace, "looping")
	emit(recorder, loop, 1_000)
	begin := time.Now()
	r.Shutdown()
	t.Logf("shut down in %v: %s", time.Since(begin).Round(time.Millisecond), r.requests)
	goleak.VerifyNone(t, leaks)

	written := r.written(t)
	assert.Len(t, written, n+1)
	event := eventAbout(t, r.clients, namespace, loop.UID)
	assert.Equal(t, 1_000, occurrences(event))
	assert.Equal(t, "Ongoing", state(event), "the next process may go on with it")
	assert.Empty(t, r.Stats().Dropped)
	assert.Zero(t, r.Stats().Tracked)
	r.requireAccounted(t, n+1_000)

	emit(recorder, loop, 1)
	assert.Equal(t, map[events.DropReason]uint64{events.DropShutdown: 1}, r.Stats().Dropped)
	r.requireAccounted(t, n+1_001)
}

func TestEmittingWhileShuttingDown(t *testing.T) {
	const emitters = 4
	namespace := apiserver.Namespace(t)
	leaks := goleak.IgnoreCurrent()
	r := startRecording(t, apiserver.Config(t), events.Options{ShutdownTimeout: patience})
	recorder := r.recorder()
	var emitted [emitters]int
	var stops [emitters]func()
	for g := range emitters {
		// Something new now and then, which has to be created.
		stops[g] = repeat(t, time.Millisecond, func() {
			emit(recorder, podIn(namespace, fmt.Sprintf("pod-%d-%d", g, emitted[g]/50)), 1)
			emitted[g]++
		})
	}
	apiserver.Eventually(t, patience, func(context.Context) error {
		if n := r.requests.Count("create", eventsResource); n < emitters {
			return fmt.Errorf("%d creates", n)
		}
		return nil
	})
	r.Shutdown()
	total := 0
	for g, stop := range stops {
		stop()
		total += emitted[g]
	}
	emit(recorder, podIn(namespace, "late"), 1)
	total++
	goleak.VerifyNone(t, leaks)

	late := r.Stats().Dropped[events.DropShutdown]
	assert.Positive(t, late)
	assert.Equal(t, map[events.DropReason]uint64{events.DropShutdown: late}, r.Stats().Dropped)
	assert.NotEmpty(t, r.written(t))
	t.Logf("%d emitted, %d of them too late", total, late)
	r.requireAccounted(t, total)
}

// In a program of controller-runtime the context ends before the reconcilers do.
func TestEmittingAfterTheContextHasEnded(t *testing.T) {
	namespace := apiserver.Namespace(t)
	leaks := goleak.IgnoreCurrent()
	r := newRecording(t, apiserver.Config(t), events.Options{ShutdownTimeout: patience})
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, r.StartRecordingToSinkWithContext(ctx))
	recorder, pod := r.recorder(), podIn(namespace, "late")
	emit(recorder, pod, 1)
	r.flush(t)
	cancel()
	emit(recorder, pod, 1)
	emit(recorder, podIn(namespace, "later"), 1)
	r.Shutdown()
	goleak.VerifyNone(t, leaks)
	assert.Equal(t, 2, occurrences(eventAbout(t, r.clients, namespace, pod.UID)))
	assert.Empty(t, r.Stats().Dropped)
	r.requireAccounted(t, 3)
}
