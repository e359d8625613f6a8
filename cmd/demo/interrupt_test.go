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

func TestAwaitStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		require.NoError(t, awaitStop(ctx, signals), "there is no reason to stop")
		assert.Equal(t, time.Minute, time.Since(began), "the parent has not exited")

		signals <- os.Interrupt
		require.ErrorIs(t, awaitStop(t.Context(), signals), errInterrupted)
	})
}

func TestOrCause(t *testing.T) {
	failed := errors.New("connection refused")
	wrong := fmt.Errorf("%w: 1 Event", errWrong)
	ctx, cancel := context.WithCancelCause(t.Context())
	require.NoError(t, orCause(ctx, nil))
	require.ErrorIs(t, orCause(ctx, failed), failed)
	cancel(errInterrupted)
	require.NoError(t, orCause(ctx, nil), "it was done by then")
	require.ErrorIs(t, orCause(ctx, failed), errInterrupted)
	require.ErrorIs(t, orCause(ctx, wrong), errWrong)
}

func TestInterruptibleStops(t *testing.T) {
	ctx, stop := interruptible(t.Context())
	require.NoError(t, ctx.Err())
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
}
