//go:build unix && !linux

package controlplane

import "syscall"

// processAttributes puts the program into its own process group, so that Ctrl-C
// does not stop it before its clients. If the parent dies, the kernel resumes a
// paused program, because it resumes every stopped process group that is orphaned.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
