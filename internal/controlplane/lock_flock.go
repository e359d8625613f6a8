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

// pollLock is the time between two tries to acquire the lock: flock cannot wait for a context.
const pollLock = 200 * time.Millisecond

// lock acquires an exclusive lock on file. If another process holds it, lock calls waiting,
// and waits until ctx is done. The kernel releases the lock when the process exits, so a
// killed process leaves nothing locked.
func lock(ctx context.Context, file string, waiting func()) (unlock func() error, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for isFirst := true; ; isFirst = false {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f.Close, nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
		case isFirst:
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-time.After(pollLock):
		}
	}
}
