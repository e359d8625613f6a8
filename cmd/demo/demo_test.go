package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// People have seen the result in memory.
func TestInterruptBeforeTheServerHasStartedIsNoError(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer out.Close()
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(errInterrupted)
	require.NoError(t, demo(ctx, options{}, out, out))
	text, err := os.ReadFile(out.Name())
	require.NoError(t, err)
	assert.Contains(t, string(text), "Stopped before the real server has started.")
}
