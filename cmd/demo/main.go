// Command demo shows what the recorder does. It starts a real kube-apiserver, runs a
// few controllers that fail in a loop, and shows their Events on the server: how each
// becomes a series, gets heartbeats and finishes, and how few requests this takes. The
// demo fails if an Event does not go through all of its states, or if a count is wrong.
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
	os.Exit(run(opts))
}

// run runs the demo and returns the exit code.
func run(opts options) int {
	if !opts.verbose {
		// The result contains the number of dropped occurrences.
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
