package workload

import "testing"

// Some returns the cases that a test runs: all of them, or the first one with -short. Use it
// for long histories. The race detector makes them six times slower, and their goroutines
// meet in one case as in another, so make race uses -short, and make unit does not.
func Some[T any](cases ...T) []T {
	if testing.Short() {
		return cases[:1]
	}
	return cases
}

// Seeds returns how many of n random histories a test runs: all of them, or a quarter with
// -short. See [Some].
func Seeds(n uint64) uint64 {
	if testing.Short() {
		return (n + 3) / 4
	}
	return n
}

// Large skips a test with thousands of series, or as much work, with -short. See [Some].
func Large(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("too much work for the race detector")
	}
}
