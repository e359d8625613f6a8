// Demo shows the recorder at work. It starts a real kube-apiserver, runs a
// handful of controllers that fail in a loop, and shows their Events as the
// server has them: how each becomes a series, has its heartbeats and is
// finished, and how few requests that takes. It ends with an error if an Event
// did not go through all its states, or if a count is wrong.
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

// Exit codes beside 0.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell has it after Ctrl-C
)

func main() {
	opts, err := parseFlags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(exitUsage)
	}
	os.Exit(run(opts))
}

// run runs the demo and returns the exit code.
func run(opts options) int {
	if !opts.verbose {
		// What is lost is counted, and part of the result.
		klog.SetLogger(klog.New(nil))
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	err := demo(ctx, opts, os.Stdout, os.Stderr)
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
