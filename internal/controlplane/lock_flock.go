//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock acquires an exclusive lock on file. If another process holds it, lock calls waiting,
// and waits. The kernel releases the lock when the process exits, so a killed process
// leaves nothing locked.
func lock(file string, waiting func()) (unlock func() error, err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		waiting()
		err = syscall.EINTR
	}
	for errors.Is(err, syscall.EINTR) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
	}
	return f.Close, nil
}
