package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var (
	errInterrupted = errors.New("interrupted")
	errOrphaned    = errors.New("the process that started this one has ended")
)

// interruptible returns a context that ends, with one of the errors above as its
// cause, when the demo is told to stop. A second Ctrl-C then ends the process at
// once. stop releases what this takes, and waits for it.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(signals)
		cancel(awaitEnd(ctx, signals))
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// orInterrupted returns why ctx has ended instead of err, if it has ended: what
// fails then fails because of that. What the demo has found is not lost over it.
func orInterrupted(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, errWrong) {
		return context.Cause(ctx)
	}
	return err
}

// awaitEnd returns why the demo is to stop, or nil when ctx ends.
//
// "go run" passes Ctrl-C on to the program but dies of SIGTERM without telling
// it, which shows only in the program having another parent.
func awaitEnd(ctx context.Context, signals <-chan os.Signal) error {
	started := os.Getppid()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			return errInterrupted
		case <-ticker.C:
			if os.Getppid() != started {
				return errOrphaned
			}
		}
	}
}
