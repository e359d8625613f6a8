package main

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
)

// inVirtualTime runs f in a bubble of testing/synctest: time passes when all goroutines of
// the bubble wait for it. Then it exits with the code that then returns.
//
// There are bubbles only in tests. [testing.Main] runs a test in any program, but never
// returns, so then runs in this test, too.
func inVirtualTime(f func(ctx context.Context), then func() int) {
	os.Args = os.Args[:1] // testing.Main parses the flags once more
	test := func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t.Context()) })
		os.Exit(then())
	}
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{Name: "demo", F: test}}, nil, nil)
}
