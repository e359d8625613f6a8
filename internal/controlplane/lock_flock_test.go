//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package controlplane

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLockIsExclusive(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), file, func() { t.Error("the lock is free") })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = lock(ctx, file, cancel)
	require.ErrorIs(t, err, context.Canceled)

	waiting := make(chan struct{})
	second := make(chan func() error, 1)
	go func() {
		unlock, err := lock(t.Context(), file, func() { close(waiting) })
		assert.NoError(t, err)
		second <- unlock
	}()
	<-waiting
	assert.Empty(t, second, "acquired twice")
	require.NoError(t, unlock())
	require.NoError(t, (<-second)())
}
