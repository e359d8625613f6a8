package main

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLifeline(t *testing.T) {
	for name, want := range map[string]error{"parent exits": errOrphaned, "stop request": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			parent, cancel := context.WithCancel(t.Context())
			defer cancel()
			stdin, write := io.Pipe()
			orphaned := make(chan struct{})
			ctx := withLifeline(parent, stdin, func() { close(orphaned) })
			_, err := write.Write([]byte("ignored"))
			require.NoError(t, err)
			require.NoError(t, ctx.Err())

			if errors.Is(want, context.Canceled) {
				cancel()
				<-ctx.Done()
			}
			require.NoError(t, write.Close())
			<-ctx.Done()
			require.Equal(t, want, context.Cause(ctx))
			<-orphaned
		})
	}
}
