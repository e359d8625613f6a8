package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process around it. It returns the exit code: 0 after
// a clean stop, 2 for a wrong command line, 1 for everything else.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 2
	}

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	removeData := false
	if cfg.dataDir == "" {
		if cfg.dataDir, err = os.MkdirTemp("", "eventseries-controlplane-"); err != nil {
			fmt.Fprintf(stderr, "controlplane: temporary data directory: %v\n", err)
			return 1
		}
		removeData = true
	}
	if cfg.lifeline {
		// Whoever started it may be gone, and with it the other ends of its output.
		// A line that nobody reads must not end it before it has cleaned up.
		signal.Ignore(syscall.SIGPIPE)
		ctx = withLifeline(ctx, stdin, exitEventually)
	}

	err = serve(ctx, cfg, stdout)
	orphaned := errors.Is(context.Cause(ctx), errOrphaned)
	if removeData || orphaned && cfg.removeOrphanedData {
		err = errors.Join(err, os.RemoveAll(cfg.dataDir))
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}
