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
	errOrphaned    = errors.New("the parent process has exited")
)

// interruptible returns a context that ends when the demo must stop, with
// errInterrupted or errOrphaned as its cause. Then a second Ctrl-C exits the process
// at once. stop releases the resources.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer signal.Stop(signals)
		cancel(awaitStop(ctx, signals))
	}()
	return ctx, func() {
		cancel(nil)
		<-done
	}
}

// orCause returns the cause of ctx instead of an error that is a consequence of it. It
// keeps errWrong, which is not.
func orCause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && !errors.Is(err, errWrong) {
		return context.Cause(ctx)
	}
	return err
}

// awaitStop waits until the demo must stop and returns the reason, or nil if ctx ends.
//
// "go run" does not forward SIGTERM to the program, but the program then has another
// parent.
func awaitStop(ctx context.Context, signals <-chan os.Signal) error {
	parent := os.Getppid()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-signals:
			return errInterrupted
		case <-ticker.C:
			if os.Getppid() != parent {
				return errOrphaned
			}
		}
	}
}
