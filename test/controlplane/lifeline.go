package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// orphanTimeout bounds the clean stop of an orphaned server, because no parent is left
// to kill it.
const orphanTimeout = 20 * time.Second

// errOrphaned is the cause of the stop after the parent has exited.
var errOrphaned = errors.New("controlplane: the parent process has exited")

// withLifeline returns a context that ends with errOrphaned when r ends, and calls
// orphaned then. r is the standard input, a pipe that the parent holds open. The
// operating system closes it when the parent exits for any reason.
func withLifeline(ctx context.Context, r io.Reader, orphaned func()) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r)
		cancel(errOrphaned)
		orphaned()
	}()
	return ctx
}

// exitEventually exits the process after orphanTimeout.
func exitEventually() {
	time.AfterFunc(orphanTimeout, func() { os.Exit(1) })
}
