// Command demo shows what the recorder does. It runs a few controllers that fail in a
// loop, and shows their Events on the server: how each becomes a series, gets heartbeats
// and finishes, and how few requests this takes. The demo fails if an Event does not go
// through all of its states, or if a count is wrong.
//
// First the server is in memory, and two hours of virtual time take a second. Then the
// demo compiles and starts a real kube-apiserver, and shows the same in real time, with
// seconds instead of minutes.
//
// Usage, in a clone of the repository:
//
//	go run ./cmd/demo [-keep] [-duration 20s] [-v]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // the exit code of a shell after Ctrl-C
)

func main() {
	opts, err := parseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(exitUsage)
	}
	if !opts.verbose {
		// The result contains the number of dropped occurrences.
		klog.SetLogger(klog.New(nil))
	}
	var inMemory error
	inVirtualTime(func(ctx context.Context) {
		inMemory = demoInMemory(ctx, opts, os.Stdout)
	}, func() int {
		if inMemory != nil {
			return exitCode(inMemory)
		}
		ctx, stop := interruptible(context.Background())
		defer stop()
		return exitCode(demo(ctx, opts, os.Stdout, os.Stderr))
	})
}

// exitCode prints the error of the demo and returns the exit code.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errInterrupted), errors.Is(err, errOrphaned):
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		return exitInterrupted
	default:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		return exitFailed
	}
}
