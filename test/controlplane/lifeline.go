package main

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// orphanGrace bounds the clean stop of a server whose parent is gone: there is
// nobody left who could kill it.
const orphanGrace = 20 * time.Second

// errOrphaned is the cause of the stop when the lifeline ended.
var errOrphaned = errors.New("controlplane: the process that started this one is gone")

// withLifeline returns a context that ends with errOrphaned when r does, and
// calls orphaned then. r is the standard input, a pipe whose other end the
// parent holds open and never writes to: the operating system closes it when the
// parent ends, however it ends. The goroutine that reads it ends with it.
func withLifeline(ctx context.Context, r io.Reader, orphaned func()) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, r) // an error is an end too
		cancel(errOrphaned)
		orphaned()
	}()
	return ctx
}

// exitEventually makes sure that the process ends when its clean stop does not
// come to an end.
func exitEventually() {
	time.AfterFunc(orphanGrace, func() { os.Exit(1) })
}
