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

// lockInterval is the time between two attempts.
const lockInterval = 200 * time.Millisecond

// lock acquires an exclusive lock on file. If another process holds it, lock calls
// waiting once, unless it is nil, and retries until ctx ends. The kernel releases
// the lock when the process exits, so a killed process leaves nothing locked.
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
