//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const lockInterval = 200 * time.Millisecond

// lock takes the lock that the file stands for, and calls waiting once if
// another process has it. The lock ends with the process that holds it, so
// nothing can stay locked behind a process that was killed.
func lock(ctx context.Context, file string, waiting func()) (unlock func() error, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-ticker.C:
		}
	}
}
