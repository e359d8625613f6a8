package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAwaitEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.NoError(t, awaitEnd(ctx, signals), "it was not told to stop")
		assert.Equal(t, time.Minute, time.Since(began), "the parent is still there")

		signals <- os.Interrupt
		require.ErrorIs(t, awaitEnd(t.Context(), signals), errInterrupted)
	})
}

func TestOrInterrupted(t *testing.T) {
	failed := errors.New("connection refused")
	wrong := fmt.Errorf("%w: 1 Event", errWrong)
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, orInterrupted(ctx, nil))
	require.ErrorIs(t, orInterrupted(ctx, failed), failed)
	cancel(errInterrupted)
	require.NoError(t, orInterrupted(ctx, nil), "it was over by then")
	require.ErrorIs(t, orInterrupted(ctx, failed), errInterrupted)
	require.ErrorIs(t, orInterrupted(ctx, wrong), errWrong)
}

func TestInterruptibleIsReleased(t *testing.T) {
	ctx, stop := interruptible(t.Context())
	require.NoError(t, ctx.Err())
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}
