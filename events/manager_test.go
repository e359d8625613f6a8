package events

import (
	"context"
	"testing"
	"testing/synctest"

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

func TestNeedLeaderElection(t *testing.T) {
	assert.False(t, NewBroadcaster(newServer()).NeedLeaderElection())
	assert.True(t, NewBroadcasterWithOptions(newServer(), Options{Scope: SameController}).NeedLeaderElection())
}
