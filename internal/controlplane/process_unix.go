//go:build unix

package controlplane

import (
	"os"
	"syscall"
)

const exeSuffix = ""

// terminate asks the program for a clean stop, and wakes it if it is paused.
func terminate(p *process) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// pause stops the program's execution without ending it.
func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// resume undoes pause.
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// interrupt asks the go command to end.
func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }
