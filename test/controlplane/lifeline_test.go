package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLifeline(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	stdin, write := io.Pipe()
	ended := make(chan struct{})
	ctx := withLifeline(parent, stdin, func() { close(ended) })
	_, err := write.Write([]byte("what is written does not matter"))
	require.NoError(t, err)
	require.NoError(t, ctx.Err())

	require.NoError(t, write.Close())
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), errOrphaned)
	<-ended
}

func TestLifelineOfAServerThatIsStopped(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	stdin, write := io.Pipe()
	ended := make(chan struct{})
	ctx := withLifeline(parent, stdin, func() { close(ended) })
	cancel()
	<-ctx.Done()
	assert.NotErrorIs(t, context.Cause(ctx), errOrphaned)
	require.NoError(t, write.Close())
	<-ended
}
