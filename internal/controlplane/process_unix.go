//go:build unix

package controlplane

import (
	"os"
	"syscall"
)

const exeSuffix = ""

// terminate requests a clean stop, and resumes the program if it is paused.
func terminate(p *process) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

func pause(p *process) error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func resume(p *process) error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// interrupt asks the go command to exit.
func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }
