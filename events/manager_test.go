package events

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A manager starts what it runs in a goroutine and ends its context.
func TestStartUnderAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.broadcaster.Start(ctx) }()
		w.emit(0)
		synctest.Wait()
		assert.Len(t, w.server.list(), 1)
		assert.Empty(t, ended, "it runs as long as the manager")
		cancel()
		require.NoError(t, <-ended)
		w.emit(1)
		w.broadcaster.Shutdown()
		assert.Len(t, w.server.list(), 2, "what came after that is written as well")
		assert.Error(t, w.broadcaster.Start(t.Context()))
	})
}

// Events of leader election are emitted before what the leader runs is started. If
// they go to the same broadcaster, they have started it.
func TestStartOfABroadcasterThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		require.NoError(t, w.broadcaster.StartRecordingToSinkWithContext(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.broadcaster.Start(ctx) }()
		synctest.Wait()
		assert.Empty(t, ended, "it runs as long as the manager")
		cancel()
		require.NoError(t, <-ended)
		time.Sleep(time.Minute)
		w.emit(0)
		synctest.Wait()
		assert.Len(t, w.server.list(), 1, "it lives as long as the context that it was started with")
		w.broadcaster.Shutdown()
		assert.ErrorIs(t, w.broadcaster.Start(t.Context()), ErrShutDown)
	})
}

func TestNeedLeaderElection(t *testing.T) {
	assert.False(t, NewBroadcaster(newServer()).NeedLeaderElection())
	assert.True(t, NewBroadcasterWithOptions(newServer(), Options{Scope: SameController}).NeedLeaderElection())
}
