//go:build !unix

package controlplane

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
)

const exeSuffix = ".exe"

func processAttributes() *syscall.SysProcAttr { return nil }

// terminate requests a clean stop. There are no signals, so it closes the
// lifeline.
func terminate(p *process) error { return p.lifeline.Close() }

func pause(*process) error {
	return fmt.Errorf("pause a process on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func resume(*process) error {
	return fmt.Errorf("resume a process on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// interrupt kills the go command, because there is no signal to send.
func interrupt(p *os.Process) error { return p.Kill() }
