//go:build unix && !linux

package controlplane

import "syscall"

// processAttributes puts the program into a process group of its own, so that
// Ctrl-C does not reach it before its parent has stopped what uses it. When the
// parent dies, the end of the lifeline tells the program; a paused one is woken
// by the kernel, as every process group is that is orphaned while stopped.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
