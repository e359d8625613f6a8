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

// terminate asks the program for a clean stop. Without signals, the end of its
// lifeline does that.
func terminate(p *process) error { return p.lifeline.Close() }

func pause(*os.Process) error {
	return fmt.Errorf("pause a process on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func resume(*os.Process) error {
	return fmt.Errorf("resume a process on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// interrupt ends the go command, which cannot be asked.
func interrupt(p *os.Process) error { return p.Kill() }
