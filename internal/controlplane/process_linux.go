package controlplane

import "syscall"

// processAttributes puts the program into its own process group, so that Ctrl-C
// does not stop it before its clients. If the parent dies, the kernel resumes the
// program, so that even a paused program notices that its lifeline has closed. A
// kill signal would leave the data behind.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGCONT}
}
