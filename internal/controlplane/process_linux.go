package controlplane

import "syscall"

// processAttributes puts the program into a process group of its own, so that
// Ctrl-C does not reach it before its parent has stopped what uses it. When the
// parent dies, the end of the lifeline tells the program, unless it is paused:
// so it is woken then. It is not killed, because it still has to remove its
// data.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}
