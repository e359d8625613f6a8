// Command controlplane runs a real Kubernetes API server and etcd in one process, for
// the integration tests, the benchmarks and the demo.
//
// There is no controller manager, scheduler or kubelet. Deleted namespaces stay
// Terminating, Pods stay Pending, and the aggregated roles (view, edit, admin) are
// empty. The servers listen on 127.0.0.1 only.
//
// When the API server is ready, the program writes the kubeconfig and prints its only
// line to standard output:
//
//	ready https://127.0.0.1:PORT kubeconfig=FILE
//
// SIGTERM, SIGINT and SIGHUP stop the API server and then etcd; the exit code is 0.
// The next start with the same --data-dir keeps the objects, the certificate and the
// administrator's token, even after SIGKILL. A power failure may lose data: etcd does not
// call fsync.
//
// The authorization mode is RBAC. The default user of the kubeconfig is in the group
// system:masters; --user adds users, and a context with the name of each.
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
	"time"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run runs the program and returns its exit code: 0 after a clean stop, 2 for an
// invalid command line, 1 for other errors.
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if cfg.lifeline {
		// If the parent has exited, nothing reads the output. Writing to it must not
		// end the process before it has removed its data.
		signal.Ignore(syscall.SIGPIPE)
		// The standard input is a pipe that the parent holds open. The operating system
		// closes it when the parent exits for any reason.
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel(errOrphaned)
			time.AfterFunc(orphanTimeout, func() { os.Exit(1) })
		}()
	}

	err = serve(ctx, cfg, stdout)
	if cfg.removeOrphanedData && errors.Is(context.Cause(ctx), errOrphaned) {
		err = errors.Join(err, os.RemoveAll(cfg.dataDir))
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	return 0
}

// orphanTimeout bounds the clean stop of an orphaned server, because no parent is left
// to kill it. Then the process exits.
const orphanTimeout = 20 * time.Second

// errOrphaned is the cause of the stop after the parent has exited.
var errOrphaned = errors.New("controlplane: the parent process has exited")
