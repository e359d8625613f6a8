//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package controlplane

import "context"

// lock does nothing on platforms without flock in the standard library. The go
// command supports concurrent builds of the same program; they are only slower.
func lock(context.Context, string, func()) (unlock func() error, err error) {
	return func() error { return nil }, nil
}
